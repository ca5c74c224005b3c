"""Where lines of code break that are wider than what shows them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

TAB = 4  # columns between tab stops

_HANG = 2  # columns that a continued line stands further in than its start

# As much as ends where a reader looks for a break; indentation alone is no piece.
_TO_BREAK = re.compile(r"\s*\S.*[\s,;]", re.DOTALL)


def hanging(line: str, columns: int) -> int:
    """How many columns all pieces of a line but its first are indented: at most half of them."""
    indentation = line[: len(line) - len(line.lstrip(" \t"))].expandtabs(TAB)
    return min(len(indentation) + _HANG, columns // 2)


def line_breaks(line: str, columns: int) -> Iterator[int]:
    """Where the pieces of a line begin that fill columns; all characters are one column wide."""
    start, room, room_of_rest = 0, columns, columns - hanging(line, columns)
    while True:
        yield start
        end = _end_of(line, start, room)
        if end == len(line):
            return
        piece = _TO_BREAK.match(line, start, end)
        start = end if piece is None else piece.end()
        room = room_of_rest


def _end_of(line: str, start: int, columns: int) -> int:
    """How far a piece may reach; it has at least one character."""
    end = min(len(line), start + columns)
    if "\t" not in line[start:end]:
        return end
    column = 0
    for at in range(start, end):
        column = (column // TAB + 1) * TAB if line[at] == "\t" else column + 1
        if column > columns:
            return max(at, start + 1)
    return end
