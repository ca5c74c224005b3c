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

KINDS = (".json", ".md", ".html", ".txt")


_NO_NAME = re.compile(r'[\\/:*?"<>|\x00-\x1f\x7f]+')
_NAME_LEN = 80


def file_name(title: str) -> str:
    """Return a name for the file of a conversation, without an ending."""
    name = one_line(_NO_NAME.sub(" ", title), len(title))
    return name.strip(" .")[:_NAME_LEN].strip() or words.UNTITLED


class ExportKindError(UserFixableError):
    """The ending of the file to export to is not in KINDS."""

    title = words.WHICH_KIND


def export(path: Path, conversations: Iterable[FiledConversation]) -> int:
    """Write conversations to a file and return their number. Replace an existing file at the end.

    If `conversations` raises an exception, such as for a cancelled export, no file changes.

    Raises:
        ExportKindError: the ending of the file is not in KINDS.
        DiskError: the file cannot be written.
    """
    if path.suffix.lower() not in KINDS:
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
                file.writelines(_pieces(path, counted()))
            Path(name).replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(name).unlink()
            raise
    except OSError as error:
        raise DiskError(words.cannot_write(path, error.strerror)) from error
    return number


def _pieces(path: Path, filed: Iterable[FiledConversation]) -> Iterator[str]:
    conversations = (one.conversation for one in filed)
    match path.suffix.lower():
        case ".json":
            yield "["
            for index, one in enumerate(filed):
                yield ",\n" if index else "\n"
                yield own_json.to_json(one)
            yield "\n]\n"
        case ".html":
            yield documents.html_start(path.stem)
            yield from map(documents.to_html, conversations)
            yield documents.HTML_END
        case ".md":
            yield from _apart(map(documents.to_markdown, conversations))
        case _:
            yield from _apart(map(documents.to_text, conversations))


def _apart(texts: Iterable[str]) -> Iterator[str]:
    for index, text in enumerate(texts):
        yield "\n\n" if index else ""
        yield text
