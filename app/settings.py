"""The person's settings: one frozen value, kept in a small JSON file.

Written atomically and flushed to the disk, so save_settings belongs on a worker. Owns no conversation's setup.
"""

from __future__ import annotations

import json
import logging
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, cast

from app.paths import free_name
from app.words import problems as words
from engine.errors import DiskError
from engine.types import ConversationId, Problem

ZOOM_MIN = 80
ZOOM_MAX = 200

log = logging.getLogger(__name__)


class Appearance(StrEnum):
    """Which palette the window uses."""

    LIGHT = "light"
    DARK = "dark"
    SYSTEM = "system"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that is remembered between starts.

    A field is a bool, an int, a text, an Appearance, a tuple of texts, or a text that may be missing,
    whose default is None. Its name is its key in the file.
    """

    appearance: Appearance = Appearance.SYSTEM
    more_contrast: bool = False  # also where the system does not ask for it
    model_path: str | None = None  # the model chosen last
    model_folders: tuple[str, ...] = ()  # added by the person
    window_geometry: str = ""  # the window's own encoding
    sidebar_visible: bool = True
    sidebar_width: int = 0  # 0: the window's own
    inspector_visible: bool = False
    selected_conversation: ConversationId | None = None
    read_message: str = ""  # where that one was being read: a message,
    read_offset: int = 0  # and pixels below its top
    text_zoom: int = 100  # per cent
    read_ahead: bool = True  # while the engine is idle
    return_sends: bool = True  # else Ctrl or ⌘ with it
    unknown: Mapping[str, object] = field(default_factory=dict[str, object])  # a newer version's


_NAMES = tuple(field.name for field in fields(Settings) if field.name != "unknown")


def zoom_in_range(percent: int) -> int:
    """Return the nearest zoom that the window offers."""
    return min(max(percent, ZOOM_MIN), ZOOM_MAX)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedSettings:
    """Settings, and what to say when their file was broken."""

    settings: Settings
    problem: Problem | None = None


def load_settings(path: Path) -> LoadedSettings:
    """Read the settings; a value that makes no sense is its default, a broken file is kept aside.

    Raises:
        DiskError: the file cannot be read or moved.
    """
    try:
        parsed = cast("object", json.loads(path.read_bytes()))
    except FileNotFoundError:
        return LoadedSettings(settings=Settings())
    except (ValueError, RecursionError):  # not JSON, not UTF-8, or nested without end
        return _keep_aside(path)
    except OSError as error:
        raise DiskError(words.cannot_read(path, error.strerror)) from error
    if not isinstance(parsed, dict):
        return _keep_aside(path)
    return LoadedSettings(settings=_from_json(cast("dict[str, object]", parsed)))


def save_settings(path: Path, settings: Settings) -> None:
    """Replace the file in one step: a crash leaves the old settings or the new ones.

    Raises:
        DiskError: the file cannot be written.
    """
    text = json.dumps(_to_json(settings), indent=2)
    try:
        _write_atomically(path, text.encode())
    except OSError as error:
        raise DiskError(words.cannot_write(path, error.strerror)) from error


def _keep_aside(path: Path) -> LoadedSettings:
    kept = free_name(path, "broken")
    try:
        path.replace(kept)
    except OSError as error:
        raise DiskError(words.cannot_move_damaged(path, error.strerror)) from error
    log.warning("settings in %s are broken; kept as %s", path, kept.name)
    problem = Problem(
        title=words.SETTINGS,
        cause=words.damaged(path.name),
        advice=words.settings_kept(kept.name),
        details=str(kept),
    )
    return LoadedSettings(settings=Settings(), problem=problem)


def _to_json(settings: Settings) -> dict[str, object]:
    return {**settings.unknown, **{name: getattr(settings, name) for name in _NAMES}}


def _from_json(parsed: dict[str, object]) -> Settings:
    defaults = Settings()
    known = {name: _read(parsed.get(name), getattr(defaults, name)) for name in _NAMES}
    unknown = {key: value for key, value in parsed.items() if key not in _NAMES}
    settings = Settings(**cast("dict[str, Any]", known), unknown=unknown)
    return replace(settings, text_zoom=zoom_in_range(settings.text_zoom))


def _read(value: object, default: object) -> object:
    """Return the value if it is of its default's kind, else the default."""
    match default:
        case None if isinstance(value, str):
            return value
        case tuple() if isinstance(value, list):
            items = cast("list[object]", value)
            return tuple(item for item in items if isinstance(item, str))
        case Appearance() if isinstance(value, str) and value in set(Appearance):
            return Appearance(value)
        case _:
            # isinstance would take true for the number 1
            return value if type(value) is type(default) else default


def _write_atomically(path: Path, content: bytes) -> None:
    # mkstemp makes the file readable by its owner alone.
    descriptor, temporary = tempfile.mkstemp(prefix=path.name, dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink()
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
