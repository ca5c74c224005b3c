"""The lasting settings of an engine, as one value. This module does not import mlx.

A command such as Submit is an act: it is carried out once. A setting holds until it is changed. The
app changes one field at a time (EngineCommands.want), and the whole value goes to the engine
thread, which acts on the differences. If another engine takes the place of the first, it gets the
newest value before all commands. So there is no other list of settings that a new engine must get.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from engine.config import EngineConfig
from engine.types import ConversationId


@dataclass(frozen=True, slots=True)
class DiskSettings:
    """The folder of cached state, and how much may be in it."""

    folder: str
    enabled: bool = True  # False: neither read nor write files. Files that are there stay.
    budget_bytes: int | None = None  # size of all files; None: chosen from the free space


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The settings: what the engine keeps and may do, until they are changed."""

    # The conversation that the window shows. Its requests and idle work have priority. None: no
    # conversation is shown.
    shown: ConversationId | None = None
    # Pinned conversations. The cache evicts their state last.
    pinned: frozenset[ConversationId] = frozenset()
    # False: no idle work but titles. A running idle job stops within one prefill chunk.
    idle_work: bool = True
    # Seconds without a request after which the model is unloaded, with all cached state. The next
    # request loads it again. None: the model stays loaded.
    unload_after_s: float | None = None
    # Upper limit of the cached state in memory. A smaller limit evicts state at once. None: what
    # the model leaves of the memory.
    most_cached_bytes: int | None = None
    disk: DiskSettings | None = None  # None: nothing is kept on disk
    picture_folder: str | None = None  # folder with the files of pictures; None: there are none

    @classmethod
    def of(cls, config: EngineConfig) -> Self:
        """Return the settings with which an engine of a configuration starts."""
        folder, pictures = config.disk_folder, config.picture_folder
        return cls(
            idle_work=config.idle_work,
            unload_after_s=config.unload_after_s,
            most_cached_bytes=config.most_budget_bytes,
            disk=folder and DiskSettings(str(folder), budget_bytes=config.disk_budget_bytes),
            picture_folder=pictures and str(pictures),
        )

    def for_stages(self) -> Wanted:
        """Return settings for stages: they keep nothing on disk, and another process ends them."""
        return replace(self, disk=None, unload_after_s=None)
