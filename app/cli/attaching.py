"""Files and pictures that the command line attaches to a message."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from app.conversation.attachments import Attachment
from app.conversation.text import file_label
from app.extraction.extractor import Extractor
from app.extraction.refusal import RefusedFileError
from app.store.pictures import PictureFiles
from app.words import attachments as words
from engine.config import EngineConfig
from engine.errors import UserFixableError


class CannotAttachError(UserFixableError):
    """A file on the command line cannot be attached."""

    title = words.NO_ATTACHMENT
    advice = words.NO_ATTACHMENT_ADVICE


@contextmanager
def kept_pictures(config: EngineConfig) -> Generator[tuple[EngineConfig, PictureFiles]]:
    """Keep the pictures of a run in a temporary folder.

    Yields:
        The configuration of an engine that finds them there, and the folder.
    """
    with TemporaryDirectory(prefix="rejoinder-") as folder:
        yield replace(config, picture_folder=Path(folder)), PictureFiles(Path(folder))


def attachments_from(paths: Iterable[str], pictures: PictureFiles | None) -> tuple[Attachment, ...]:
    """Return the text of files, and the pictures among them, whose files are stored in `pictures`.

    Raises:
        CannotAttachError: a file cannot be attached.
    """
    extractor = Extractor()
    found: list[Attachment] = []
    try:
        for path in map(Path, paths):
            try:
                extracted = extractor.read(path.absolute())
            except RefusedFileError as refusal:
                raise CannotAttachError(words.refused(file_label(path), refusal.why)) from None
            picture = extracted.attachment.picture
            if picture is not None and extracted.content is not None:
                assert pictures is not None, "this run has no folder for pictures"
                pictures.add(picture, extracted.content)
            found.append(extracted.attachment)
    finally:
        extractor.close()
    return tuple(found)
