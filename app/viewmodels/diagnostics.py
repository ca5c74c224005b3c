"""The text of the diagnostics file. No Qt, no I/O.

The file must not have any text of a user. Settings that are texts are therefore named but not
stated, and the lines of the log lose all paths, quoted texts and messages of exceptions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import fields
from enum import Enum
from typing import TYPE_CHECKING

from app.words import diagnostics as words

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Section = Mapping[str, object]

_RECORD = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} [A-Z]+ \S+ [\w.]+: ")
_FRAME = re.compile(r'  File "(?:[^"]*/)?([^"/]*)", line (\d+),? in (\S+)')
_CRASH_FRAME = re.compile(r'  File "(?:[^"]*/)?([^"/]*)", line (\d+) in (\S+)')
_ERROR = re.compile(r"([A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt|Warning))(?::|$)")
_FATAL = re.compile(r"(Fatal Python error|Thread|Current thread)\b[\w :]*")
# A text that can match in two ways takes time that doubles with each of its characters, so a
# backslash matches only together with the next character.
_QUOTED = re.compile(
    r"“[^”]*”|\u2018[^\u2019]*\u2019|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|`[^`]*`"
)
# The text of a longer line is left out. A search for quotations takes quadratic time.
_MAX_LINE = 1000
# A name in a path may have spaces, so a path ends with its line.
_PATH = re.compile(r"(?<!\S)\S*/.*")


def plain_fields(value: DataclassInstance) -> dict[str, object]:
    """Return the fields of a dataclass. Texts are reduced to whether they are set."""
    return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}


def diagnostics_text(
    sections: Mapping[str, Section], log_lines: Iterable[str], crash_lines: Iterable[str]
) -> str:
    """Return the text of the file: sections, then the redacted lines of the log and the crash."""
    parts = [words.INTRODUCTION]
    for heading, section in sections.items():
        lines = [f"{name}: {value}" for name, value in section.items()]
        parts.append("\n".join([f"# {heading}", *lines]))
    for heading, lines in ((words.LOG, log_lines), (words.CRASH, crash_lines)):
        parts.append("\n".join([f"# {heading}", *redacted(lines)]))
    return "\n\n".join(parts) + "\n"


def redacted(lines: Iterable[str]) -> list[str]:
    """Return the lines of a log that hold no text of a user.

    Lines of a record lose quoted texts, and everything from the first path on. Of a traceback,
    files, functions and kinds of exceptions are kept. All other lines, for example the rest of a
    message with several lines, are left out.
    """
    kept = (_redacted_line(line.rstrip()) for line in lines)
    return [line for line in kept if line is not None]


def _redacted_line(line: str) -> str | None:
    record = _RECORD.match(line)
    if record is not None:
        if len(line) > _MAX_LINE:
            return record[0] + words.TEXT
        text = _QUOTED.sub(words.TEXT, line[record.end() :])
        text = _PATH.sub(words.PATH, text)
        error = re.search(r"\b\w+(?:Error|Exception)\(|\b\w+(?:Error|Exception): ", text)
        return record[0] + (text if error is None else text[: error.end()] + words.TEXT)
    frame = _FRAME.match(line) or _CRASH_FRAME.match(line)
    if frame is not None:
        return f"  {frame[1]}:{frame[2]} {frame[3]}"
    known = _ERROR.match(line) or _FATAL.match(line)
    return None if known is None else known[0].rstrip(": ")


def _plain(value: object) -> object:
    match value:
        case None | bool() | int() | float():
            return value
        case Enum():
            return value.value
        case str():
            return words.SET if value else words.NOT_SET
        case Mapping() | tuple() | list() | frozenset():
            return words.entries(len(value))  # pyright: ignore[reportUnknownArgumentType]
        case _:
            return words.SET
