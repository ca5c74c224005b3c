"""Text search in the messages of a conversation: queries, matches and their numbers. No Qt, no I/O.

The find bar counts the matches of all messages, laid out or not. A message that is laid out is
searched in the text of its rows. Any other message is searched in its Markdown source, because
parsing takes about 0.5 ms per message. Both texts are folded (lower case, same length) once, since
a search in folded text takes a tenth of the time of a pattern that ignores case.

Counts keeps the number of matches of each message and numbers the matches through the whole
conversation: "3 of 17" and "next" are then arithmetic. app/widgets/transcript/find.py calls this
module, lays out the message of the chosen match and selects the match.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

# Separator between the rows of a message: no match may span two rows. No message contains NUL.
ROW_END = "\0"

_WHITE = r"\s+"
_MARKUP = (
    # White space between two words, with Markdown marks that end one word or begin the next.
    r"[*_~`\])]*\s[\s*_~`>|#\[(-]*"
)


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One match of the query: the nth (from 0) in the message with index `message`."""

    message: int
    nth: int


@dataclass(frozen=True, slots=True)
class FindPosition:
    """Number of the match on show (from 1) and number of all matches; both 0 without a match."""

    number: int = 0
    total: int = 0


@dataclass(frozen=True, slots=True)
class Searched:
    """The folded text of one message, in which matches are counted."""

    text: str  # the text of the rows, joined by ROW_END, or the Markdown source
    is_read: bool  # True: text of the rows (as users read it); False: Markdown source


@dataclass(frozen=True, slots=True)
class Wanted:
    """A compiled query for folded text."""

    in_read: re.Pattern[str]  # pattern for the text of rows
    in_markdown: re.Pattern[str]  # pattern for Markdown source: allows marks between words
    word: str | None  # the query if it is a single word, which needs no pattern to count

    def pattern(self, searched: Searched) -> re.Pattern[str]:
        return self.in_read if searched.is_read else self.in_markdown

    def count(self, searched: Searched) -> int:
        if self.word is not None:
            return searched.text.count(self.word)
        return len(self.pattern(searched).findall(searched.text))


def folded(text: str) -> str:
    """Return the text in lower case, with every character at its old offset.

    A search in folded text takes a tenth of the time of a pattern that ignores case.
    """
    lower = text.lower()
    if lower.isascii():
        return lower
    if len(lower) != len(text):
        lower = "".join(small if len(small := one.lower()) == 1 else one for one in text)
    return lower.replace("ς", "σ")  # noqa: RUF001 - a Greek sigma at the end of a word


def wanted(text: str) -> Wanted | None:
    """Compile a query that ignores case and the kind of white space between words.

    Return None if the query has no words.
    """
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
    """Number of matches in each message, for one query.

    Only texts that are new or have changed are searched. The matches of all messages are numbered
    from 0, in the order of the messages.
    """

    def __init__(self, wanted: Wanted | None = None) -> None:
        self._wanted = wanted
        self._known: dict[Searched, int] = {}  # number of matches by text, from the last count()
        self._ends: list[int] = []  # number of matches up to the end of each message

    def count(self, messages: Sequence[Searched]) -> None:
        """Count the matches in these messages. They replace the messages of the last call."""
        counts = [self._count(searched) for searched in messages]
        self._known = dict(zip(messages, counts, strict=True))  # forgets texts that have changed
        self._ends = list(accumulate(counts))

    @property
    def total(self) -> int:
        return self._ends[-1] if self._ends else 0

    def within(self, message: int) -> int:
        """Return the number of matches in a message."""
        return self._ends[message] - self._start(message)

    def number(self, occurrence: Occurrence) -> int | None:
        """Return the number of a match among all matches; None if the match no longer exists."""
        number = self._start(occurrence.message) + occurrence.nth
        return number if number < self._ends[occurrence.message] else None

    def occurrence(self, number: int) -> Occurrence:
        message = bisect_right(self._ends, number)
        return Occurrence(message, number - self._start(message))

    def neighbour(self, current: Occurrence | None, *, step: int, near: int) -> int:
        """Return the number of the match that is `step` matches after the current one.

        The last match is followed by the first. If step is 0, or if there is no current match or it
        no longer exists, return the first match in the message `near` or after it.
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
