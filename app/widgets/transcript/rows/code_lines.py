"""Divide the text of a code block into the lines that are shown. No Qt.

A "hard line" is a line of the code as written: it ends at a newline. A hard line is shown as
several lines if it is wrapped or too long for one layout. A "position" is the index of a character
in the whole text.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable

from app.viewmodels.highlight import MAX_LINE_LEN

# A function that cuts a line into pieces and returns the index at which each piece starts. The
# first index is 0.
Breaker = Callable[[str], Iterable[int]]


def cut_overlong(line: str) -> Iterable[int]:
    """Cut a line into pieces of at most MAX_LINE_LEN characters; return their start indexes."""
    return range(0, max(len(line), 1), MAX_LINE_LEN)


class CodeLines:
    """The lines into which a code block is divided on screen. More text can be added at the end."""

    def __init__(self) -> None:
        self.text = ""
        self.starts: list[int] = [0]  # start position of each shown line
        # True if a line of the source text is longer than MAX_LINE_LEN. The block is then not
        # coloured.
        self.is_cut = False
        self._hard: list[int] = [0]  # start position of each line of the source text
        self._breaker: Breaker = cut_overlong

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def num_hard(self) -> int:
        """The number of lines of the source text (hard lines)."""
        return len(self._hard)

    def grow(self, text: str) -> int:
        """Replace the text and return the number of the first shown line that changed.

        The new text must begin with the old text.
        """
        start = self._hard.pop()
        first = self.line_at(start)
        del self.starts[first:]
        self.text = text
        while True:
            end = text.find("\n", start)
            line = text[start : len(text) if end < 0 else end]
            self._hard.append(start)
            self.starts += [start + at for at in self._breaker(line)]
            self.is_cut |= len(line) > MAX_LINE_LEN
            if end < 0:
                return first
            start = end + 1

    def rebreak(self, breaker: Breaker) -> None:
        """Divide the whole text into shown lines again, with a new breaker function."""
        self._breaker = breaker
        self._hard, self.starts = [0], [0]
        self.grow(self.text)

    def line(self, number: int) -> str:
        start = self.starts[number]
        end = self.starts[number + 1] if number + 1 < len(self.starts) else len(self.text)
        return self.text[start:end].removesuffix("\n")

    def line_at(self, position: int) -> int:
        return bisect_right(self.starts, position) - 1

    def hard_at(self, position: int) -> int:
        """Return the number of the source line (hard line) that contains a text position."""
        return bisect_right(self._hard, position) - 1

    def hard_start(self, number: int) -> int:
        return self._hard[number]

    def hard_line(self, number: int) -> str:
        """Return a line of the source text (hard line) without its newline."""
        start = self._hard[number]
        end = self._hard[number + 1] if number + 1 < len(self._hard) else len(self.text)
        return self.text[start:end].removesuffix("\n")
