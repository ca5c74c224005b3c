"""The error of a file that cannot be attached."""

from __future__ import annotations

from enum import StrEnum


class Refused(StrEnum):
    """The reasons why a file is not attached."""

    MISSING = "missing"
    UNREADABLE = "unreadable"
    FOLDER = "folder"
    LINK = "link"
    NO_FILE = "no_file"
    EMPTY = "empty"
    BINARY = "binary"
    ENCODING = "encoding"
    IMAGE = "image"  # in a format that is not read
    HEIF = "heif"  # only macOS can convert it
    PICTURE_TOO_LARGE = "picture_too_large"
    PICTURE_TOO_COMPLEX = "picture_too_complex"
    PICTURE_PAGES = "picture_pages"
    SOUND = "sound"
    ARCHIVE = "archive"
    OFFICE = "office"
    OLD_OFFICE = "old_office"
    RICH_TEXT = "rich_text"
    DAMAGED = "damaged"
    ENCRYPTED = "encrypted"
    SCANNED = "scanned"
    TOO_LARGE = "too_large"
    TOO_COMPLEX = "too_complex"
    STOPPED = "stopped"


class RefusedFileError(Exception):
    """A file cannot be attached. `why` is the reason."""

    def __init__(self, why: Refused) -> None:
        super().__init__(why.value)
        self.why = why
