"""Looking for text in messages. Pure."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate


@dataclass(frozen=True, slots=True)
class Occurrence:
    """The nth time (from 0) that a message holds what is looked for."""

    message: int
    nth: int


@dataclass(frozen=True, slots=True)
class Found:
    """Which occurrence is shown, from 1, and how many there are. Both are 0 where there is none."""

    number: int = 0
    total: int = 0


def find_pattern(text: str) -> re.Pattern[str] | None:
    """What matches text in any case, with any white space between its words; None for no words."""
    words = [re.escape(word) for word in text.split()]
    return re.compile(r"\s+".join(words), re.IGNORECASE) if words else None


class Counts:
    """How often each message holds a pattern; a text is searched once. Occurrences count from 0."""

    def __init__(self, pattern: re.Pattern[str] | None = None) -> None:
        self._pattern = pattern
        self._known: dict[str, int] = {}
        self._ends: list[int] = []  # of the occurrences of each message, counted in all

    def count(self, texts: Sequence[str]) -> None:
        """These are the messages from now on."""
        self._ends = list(accumulate(self._count(text) for text in texts))

    @property
    def total(self) -> int:
        return self._ends[-1] if self._ends else 0

    def occurrence(self, number: int) -> Occurrence:
        message = bisect_right(self._ends, number)
        return Occurrence(message, number - self._start(message))

    def neighbour(self, current: Occurrence | None, *, step: int, near: int) -> int:
        """The one that is step places from the current one, around the end.

        Without one, or from one that is gone, the first in message near or after it.
        """
        if current is not None and step:
            number = self._start(current.message) + current.nth
            if number < self._ends[current.message]:
                return (number + step) % self.total
        first = self._start(min(near, len(self._ends)))
        return first if first < self.total else 0

    def _start(self, message: int) -> int:
        return self._ends[message - 1] if message else 0

    def _count(self, text: str) -> int:
        if self._pattern is None:
            return 0
        if text not in self._known:
            self._known[text] = len(self._pattern.findall(text))
        return self._known[text]
