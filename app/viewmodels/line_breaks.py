"""Line breaks for wrapped code: lines wider than their view become pieces. No Qt, no I/O."""

from __future__ import annotations

import re
from collections.abc import Iterator

TAB = 4  # columns between tab stops

_HANG = 2  # columns by which a line's later pieces are indented more than its start

# The longest piece that ends after white space, a comma or a semicolon. A piece has at least one
# visible character: indentation alone is no piece.
_TO_BREAK = re.compile(r"\s*\S.*[\s,;]", re.DOTALL)


def hanging(line: str, columns: int) -> int:
    """Return the indentation in columns of all pieces of a line except the first.

    The indentation is at most half of the available columns.
    """
    indentation = line[: len(line) - len(line.lstrip(" \t"))].expandtabs(TAB)
    return min(len(indentation) + _HANG, columns // 2)


def line_breaks(line: str, columns: int) -> Iterator[int]:
    """Yield the offset of each piece of a line that is wrapped to `columns`.

    Every character is one column wide, except a tab, which ends at the next tab stop.
    """
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
    """Return the largest offset at which a piece can end; a piece is never empty."""
    end = min(len(line), start + columns)
    if "\t" not in line[start:end]:
        return end
    column = 0
    for at in range(start, end):
        column = (column // TAB + 1) * TAB if line[at] == "\t" else column + 1
        if column > columns:
            return max(at, start + 1)
    return end
