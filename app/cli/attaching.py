"""Files that the command line attaches to a message."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from app.conversation.attachments import Attachment
from app.conversation.text import file_label
from app.extraction.extractor import Extractor
from app.extraction.refusal import RefusedFileError
from app.words import attachments as words
from engine.errors import UserFixableError


class CannotAttachError(UserFixableError):
    """A file on the command line cannot be attached."""

    title = words.NO_ATTACHMENT
    advice = words.NO_ATTACHMENT_ADVICE


def attachments_from(paths: Iterable[str]) -> tuple[Attachment, ...]:
    """Return the text of files.

    Raises:
        CannotAttachError: a file has no text that can be attached.
    """
    extractor = Extractor()
    found: list[Attachment] = []
    try:
        for path in map(Path, paths):
            try:
                found.append(extractor.read(path.absolute()).attachment)
            except RefusedFileError as refusal:
                raise CannotAttachError(words.refused(file_label(path), refusal.why)) from None
    finally:
        extractor.close()
    return tuple(found)
