"""Export of conversations to one file, whose ending names the kind. The file is written whole."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

from app.conversation.attachments import MAX_PICTURE_BYTES, AttachedPicture
from app.conversation.filed import FiledConversation
from app.conversation.text import one_line
from app.exchange import documents, own_files, own_json
from app.store.pictures import PictureFiles
from app.words import exchange as words
from engine.errors import DiskError, UserFixableError
from engine.plain_file import read_plain

log = logging.getLogger(__name__)

_NO_NAME = re.compile(r'[\\/:*?"<>|\x00-\x1f\x7f]+')
_NAME_LEN = 80
_MAX_THUMBNAIL_BYTES = 4 << 20


def file_name(title: str) -> str:
    """Return a name for the file of a conversation, without an ending."""
    name = one_line(_NO_NAME.sub(" ", title), len(title))
    return name.strip(" .")[:_NAME_LEN].strip() or words.UNTITLED


class ExportKindError(UserFixableError):
    """The ending of the file to export to names no kind."""

    title = words.WHICH_KIND


def export(path: Path, conversations: Iterable[FiledConversation], pictures: PictureFiles) -> int:
    """Write conversations to a file and return their number. Replace an existing file at the end.

    JSON has the files of the pictures, and a web page has their thumbnails. If `conversations`
    raises an exception, such as for a cancelled export, no file changes.

    Raises:
        ExportKindError: the ending of the file names no kind.
        DiskError: the file cannot be written.
    """
    write = WRITERS.get(path.suffix.lower())
    if write is None:
        raise ExportKindError("")
    number = 0

    def counted() -> Iterator[FiledConversation]:
        nonlocal number
        for filed in conversations:
            yield filed
            number += 1

    try:
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.writelines(write(path.stem, counted(), pictures))
            Path(name).replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(name).unlink()
            raise
    except OSError as error:
        raise DiskError(words.cannot_write(path, error.strerror)) from error
    return number


def _json(_title: str, filed: Iterable[FiledConversation], pictures: PictureFiles) -> Iterator[str]:
    separator = "["
    for one in _with_pictures(filed, pictures):
        yield f"{separator}\n"
        yield one
        separator = ","
    yield "\n]\n" if separator == "," else "[\n]\n"


def _with_pictures(filed: Iterable[FiledConversation], pictures: PictureFiles) -> Iterator[str]:
    """Yield the objects of conversations, and before each its pictures that are not yielded yet."""
    written: set[str] = set()
    for one in filed:
        for picture in own_json.pictures_of(one):
            if picture.original in written:
                continue
            written.add(picture.original)
            content = _content(pictures.original(picture), MAX_PICTURE_BYTES)
            if content is not None:
                yield own_files.picture_to_json(picture, content)
        yield own_json.to_json(one)


def _content(path: Path, max_bytes: int) -> bytes | None:
    """Return the content of a stored file of a picture, or None if the file cannot be read."""
    try:
        return read_plain(path, max_bytes)
    except OSError as error:
        log.warning("a picture is exported by its name only: %s", error.strerror)
        return None


def _document(
    kind: documents.DocumentKind,
    title: str,
    filed: Iterable[FiledConversation],
    pictures: PictureFiles,
) -> Iterator[str]:
    def thumbnail(picture: AttachedPicture) -> bytes | None:
        return _content(pictures.thumbnail(picture), _MAX_THUMBNAIL_BYTES)

    yield kind.start(title)
    for index, one in enumerate(filed):
        yield kind.between if index else ""
        yield kind.write(one.conversation, thumbnail)
    yield kind.end


Writer = Callable[[str, Iterable[FiledConversation], PictureFiles], Iterator[str]]
# Kinds of files by their ending. A function gets the name of the file and returns its text in
# pieces.
WRITERS: dict[str, Writer] = {
    ".json": _json,
    **{ending: partial(_document, kind) for ending, kind in documents.KINDS.items()},
}
