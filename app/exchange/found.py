"""The values that an import finds in files beside conversations."""

from __future__ import annotations

from dataclasses import dataclass

from app.settings import PictureSize


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """A file, conversation or picture that cannot be read."""

    name: str
    reason: str  # one sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundPicture:
    """The file of a picture, which is not decoded yet.

    An import yields it before the conversations that have the picture. In these conversations, the
    values of an AttachedPicture are those that the imported file states, until ImportedPictures
    replaces them. `key` is its `original`.
    """

    key: str
    content: bytes
    size: PictureSize = PictureSize.MEDIUM  # for the model
