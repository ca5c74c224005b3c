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
        CannotAttachError: a file cannot be attached, or it is a picture.
    """
    extractor = Extractor()
    found: list[Attachment] = []
    try:
        for path in map(Path, paths):
            try:
                attachment = extractor.read(path.absolute()).attachment
            except RefusedFileError as refusal:
                raise CannotAttachError(words.refused(file_label(path), refusal.why)) from None
            if attachment.picture is not None:
                raise CannotAttachError(words.picture_in_terminal(file_label(path)))
            found.append(attachment)
    finally:
        extractor.close()
    return tuple(found)
