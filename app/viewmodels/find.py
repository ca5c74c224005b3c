"""Looking for text in messages. Pure."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

# Between the rows of a message: a match does not reach from one into the next. No message has it.
ROW_END = "\0"

_WHITE = r"\s+"
_MARKUP = (
    r"[*_~`\])]*\s[\s*_~`>|#\[(-]*"  # white space, with the marks that words begin and end with
)


@dataclass(frozen=True, slots=True)
class Occurrence:
    """The nth time (from 0) that a message holds what is looked for."""

    message: int
    nth: int


@dataclass(frozen=True, slots=True)
class FindPosition:
    """Which occurrence is shown, from 1, and how many there are. Both are 0 where there is none."""

    number: int = 0
    total: int = 0


@dataclass(frozen=True, slots=True)
class Searched:
    """A message's folded text: what is read of it, its rows apart; or its Markdown."""

    text: str
    is_read: bool


@dataclass(frozen=True, slots=True)
class Wanted:
    """What folded text is looked through for. word is all of it if it is one word."""

    in_read: re.Pattern[str]
    in_markdown: re.Pattern[str]
    word: str | None

    def pattern(self, searched: Searched) -> re.Pattern[str]:
        return self.in_read if searched.is_read else self.in_markdown

    def count(self, searched: Searched) -> int:
        if self.word is not None:
            return searched.text.count(self.word)
        return len(self.pattern(searched).findall(searched.text))


def folded(text: str) -> str:
    """Text as it is compared: without capitals, each character in its place.

    A search in folded text takes a tenth of the time of one that ignores case.
    """
    lower = text.lower()
    if lower.isascii():
        return lower
    if len(lower) != len(text):
        lower = "".join(small if len(small := one.lower()) == 1 else one for one in text)
    return lower.replace("ς", "σ")  # noqa: RUF001 - Greek, of which one stands at ends of words


def wanted(text: str) -> Wanted | None:
    """What matches text in any case, with any white space between its words; None for no words."""
    words = folded(text).split()
    if not words:
        return None
    escaped = [re.escape(word) for word in words]
    return Wanted(
        in_read=re.compile(_WHITE.join(escaped)),
        in_markdown=re.compile(_MARKUP.join(escaped)),
        word=words[0] if len(words) == 1 else None,
    )


class Counts:
    """How often each message holds what is wanted; a text is searched once. Occurrences count from 0."""

    def __init__(self, wanted: Wanted | None = None) -> None:
        self._wanted = wanted
        self._known: dict[Searched, int] = {}
        self._ends: list[int] = []  # of the occurrences of each message, counted in all

    def count(self, messages: Sequence[Searched]) -> None:
        """These are the messages from now on."""
        counts = [self._count(searched) for searched in messages]
        self._known = dict(zip(messages, counts, strict=True))  # no longer that of texts that grew
        self._ends = list(accumulate(counts))

    @property
    def total(self) -> int:
        return self._ends[-1] if self._ends else 0

    def within(self, message: int) -> int:
        """How many there are in a message."""
        return self._ends[message] - self._start(message)

    def number(self, occurrence: Occurrence) -> int | None:
        """The place of an occurrence among all; None if it is gone."""
        number = self._start(occurrence.message) + occurrence.nth
        return number if number < self._ends[occurrence.message] else None

    def occurrence(self, number: int) -> Occurrence:
        message = bisect_right(self._ends, number)
        return Occurrence(message, number - self._start(message))

    def neighbour(self, current: Occurrence | None, *, step: int, near: int) -> int:
        """The one that is step places from the current one, around the end.

        Without one, or from one that is gone, the first in message near or after it.
        """
        number = None if current is None else self.number(current)
        if number is not None and step:
            return (number + step) % self.total
        first = self._start(min(near, len(self._ends)))
        return first if first < self.total else 0

    def _start(self, message: int) -> int:
        return self._ends[message - 1] if message else 0

    def _count(self, searched: Searched) -> int:
        if self._wanted is None:
            return 0
        known = self._known.get(searched)
        return self._wanted.count(searched) if known is None else known
