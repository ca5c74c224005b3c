"""Export of conversations to one file, whose ending names the kind. The file is written whole."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from app.conversation.filed import FiledConversation
from app.conversation.text import one_line
from app.exchange import documents, own_json
from app.words import exchange as words
from engine.errors import DiskError, UserFixableError

_NO_NAME = re.compile(r'[\\/:*?"<>|\x00-\x1f\x7f]+')
_NAME_LEN = 80


def file_name(title: str) -> str:
    """Return a name for the file of a conversation, without an ending."""
    name = one_line(_NO_NAME.sub(" ", title), len(title))
    return name.strip(" .")[:_NAME_LEN].strip() or words.UNTITLED


class ExportKindError(UserFixableError):
    """The ending of the file to export to names no kind."""

    title = words.WHICH_KIND


def export(path: Path, conversations: Iterable[FiledConversation]) -> int:
    """Write conversations to a file and return their number. Replace an existing file at the end.

    If `conversations` raises an exception, such as for a cancelled export, no file changes.

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
                file.writelines(write(path.stem, counted()))
            Path(name).replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(name).unlink()
            raise
    except OSError as error:
        raise DiskError(words.cannot_write(path, error.strerror)) from error
    return number


def _json(_title: str, filed: Iterable[FiledConversation]) -> Iterator[str]:
    yield "["
    for index, one in enumerate(filed):
        yield ",\n" if index else "\n"
        yield own_json.to_json(one)
    yield "\n]\n"


def _html(title: str, filed: Iterable[FiledConversation]) -> Iterator[str]:
    yield documents.html_start(title)
    yield from (documents.to_html(one.conversation) for one in filed)
    yield documents.HTML_END


def _markdown(_title: str, filed: Iterable[FiledConversation]) -> Iterator[str]:
    return _apart(documents.to_markdown(one.conversation) for one in filed)


def _text(_title: str, filed: Iterable[FiledConversation]) -> Iterator[str]:
    return _apart(documents.to_text(one.conversation) for one in filed)


def _apart(texts: Iterable[str]) -> Iterator[str]:
    for index, text in enumerate(texts):
        yield "\n\n" if index else ""
        yield text


# Kinds of files by their ending. A function gets the name of the file and returns its text in pieces.
WRITERS = {".json": _json, ".html": _html, ".md": _markdown, ".txt": _text}
