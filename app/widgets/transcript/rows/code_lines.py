"""The lines of a block of code as they are shown, and which lines of its text they belong to. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable

from app.viewmodels.highlight import MAX_LINE_LEN

# Where the pieces of a line begin; the first begins at 0.
Breaker = Callable[[str], Iterable[int]]


def cut_overlong(line: str) -> Iterable[int]:
    """Cut a line in pieces that can be laid out at once."""
    return range(0, max(len(line), 1), MAX_LINE_LEN)


class CodeLines:
    """The lines of a text that grows at its end, each broken in pieces where it is too long."""

    def __init__(self) -> None:
        self.text = ""
        self.starts: list[int] = [0]  # of the lines shown
        self.is_cut = False  # a line is too long for colours
        self._hard: list[int] = [0]  # starts of the text's own lines
        self._breaker: Breaker = cut_overlong

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def num_hard(self) -> int:
        """How many lines the text has."""
        return len(self._hard)

    def grow(self, text: str) -> int:
        """Take the whole text, which the last one is a start of; return the first changed line."""
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
        """Break all lines in another way."""
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
        """Which of the text's own lines holds a position."""
        return bisect_right(self._hard, position) - 1

    def hard_start(self, number: int) -> int:
        return self._hard[number]

    def hard_line(self, number: int) -> str:
        """One of the text's own lines."""
        start = self._hard[number]
        end = self._hard[number + 1] if number + 1 < len(self._hard) else len(self.text)
        return self.text[start:end].removesuffix("\n")
