"""Folders of conversations, and how a new conversation in a folder begins. Pure.

A folder has no list of its conversations: each conversation names its folder (placement.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from app.conversation.placement import FolderId
from app.conversation.preset import Preset, apply_preset
from app.conversation.text import clean_text, one_line
from app.conversation.tree import Conversation
from app.words import folders as words

FOLDER_NAME_LEN = 80


class FolderColor(StrEnum):
    """The colours of a folder. A value is the name of a token in theme/tokens.py."""

    GRAY = "gray"
    BLUE = "blue"
    GREEN = "green"
    ORANGE = "orange"
    RED = "red"
    PURPLE = "purple"

    @classmethod
    def named(cls, name: str) -> FolderColor:
        """Return a colour by its name, or gray for a colour of a newer version."""
        return cls(name) if name in set(cls) else cls.GRAY


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """A named and coloured group of conversations. New conversations in it begin with its values."""

    folder_id: FolderId
    name: str
    color: FolderColor = FolderColor.GRAY
    created_at: float = 0.0  # Unix seconds
    deleted_at: float | None = None  # Unix seconds; None if not deleted
    system_prompt: str = ""  # "" for the one of the preset
    preset: str = ""  # name of a preset; "" for the preset of the model


def clean_folder(folder: Folder) -> Folder:
    """Return a folder with a name on one line. An empty name becomes "New Folder"."""
    return replace(
        folder,
        name=one_line(folder.name, FOLDER_NAME_LEN) or words.NEW_NAME,
        system_prompt=clean_text(folder.system_prompt),
    )


def begin_in_folder(conv: Conversation, folder: Folder, preset: Preset | None) -> Conversation:
    """Apply a folder's preset, then its own system prompt, to a new, empty conversation."""
    begun = conv if preset is None else apply_preset(conv, preset)
    if not folder.system_prompt.strip():
        return begun
    return replace(begun, system_prompt=folder.system_prompt)
