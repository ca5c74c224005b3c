"""Line breaks for code that is wider than the view. No Qt, no I/O."""

from __future__ import annotations

import re
from collections.abc import Iterator

TAB = 4  # columns between tab stops

_HANG = 2  # extra indentation of the second and later pieces of a line, in columns

# Matches up to the last white space, comma or semicolon. A piece must have a visible character, so
# that indentation alone does not become a piece.
_TO_BREAK = re.compile(r"\s*\S.*[\s,;]", re.DOTALL)


def hanging(line: str, columns: int) -> int:
    """Return the indentation of the second and later pieces of a line, in columns.

    The indentation is at most half of `columns`, the width of the view.
    """
    indentation = line[: len(line) - len(line.lstrip(" \t"))].expandtabs(TAB)
    return min(len(indentation) + _HANG, columns // 2)


def line_breaks(line: str, columns: int) -> Iterator[int]:
    """Yield the offset in the line at which each piece begins; `columns` is the view's width.

    A tab extends to the next tab stop. Any other character is one column wide.
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
    """Return the largest offset at which a piece that begins at `start` fits into `columns`.

    A piece has at least one character.
    """
    end = min(len(line), start + columns)
    if "\t" not in line[start:end]:
        return end
    column = 0
    for at in range(start, end):
        column = (column // TAB + 1) * TAB if line[at] == "\t" else column + 1
        if column > columns:
            return max(at, start + 1)
    return end
