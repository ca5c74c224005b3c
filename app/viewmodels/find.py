"""Text search in the messages of a conversation. No Qt, no I/O.

The find bar counts the matches in all messages. If a message is laid out, the search uses the text
of its rows. Otherwise it uses the Markdown source, because parsing would take about 0.5 ms per
message. The text of each message is case-folded once: it is converted to lower case of the same
length. A search in case-folded text takes a tenth of the time of a regular expression that ignores
case.

Counts stores the number of matches in each message and numbers all matches of the conversation
from first to last. app/widgets/transcript/search/match_finder.py calls this module. It lays out
the message of the chosen match and selects the match.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

# Separator between the rows of a message, so that no match spans two rows. No message contains NUL.
ROW_END = "\0"

_WHITE = r"\s+"
# White space between two words in Markdown source, with the marks before and after it.
_GAP = r"[*_~`\])]*+\s[\s*_~`>|#\[(-]*+"
_MARKS = frozenset("*_~`])>|#[(-")


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One match of the query: match number `nth` (from 0) in the message with index `message`."""

    message: int
    nth: int


@dataclass(frozen=True, slots=True)
class FindPosition:
    """The two numbers in the find bar, as in "3 of 17". Both are 0 if there is no match."""

    number: int = 0
    total: int = 0


@dataclass(frozen=True, slots=True)
class SearchText:
    """The searchable text of one message. It is case-folded: see case_folded()."""

    text: str  # case-folded text: rows joined by ROW_END, or Markdown source
    is_read: bool  # True if `text` is the text of painted rows, False if it is Markdown source


@dataclass(frozen=True, slots=True)
class Query:
    """A compiled query. It works on case-folded text only: see case_folded()."""

    in_read: re.Pattern[str]  # pattern for the text of painted rows
    in_markdown: re.Pattern[str]  # pattern for Markdown source: allows markup between words
    # The query if it is a single word, for which str.count() is enough. None if it has several
    # words.
    word: str | None

    def pattern(self, search_text: SearchText) -> re.Pattern[str]:
        return self.in_read if search_text.is_read else self.in_markdown

    def count(self, search_text: SearchText) -> int:
        if self.word is not None:
            return search_text.text.count(self.word)
        return len(self.pattern(search_text).findall(search_text.text))


def case_folded(text: str) -> str:
    """Convert text to lower case without changing its length, so that all offsets stay valid.

    A search in case-folded text takes a tenth of the time of a regular expression that ignores
    case.
    """
    lower = text.lower()
    if lower.isascii():
        return lower
    if len(lower) != len(text):
        lower = "".join(small if len(small := one.lower()) == 1 else one for one in text)
    return lower.replace("ς", "σ")  # noqa: RUF001 - a Greek sigma at the end of a word


def compile_query(text: str) -> Query | None:
    """Compile a query. Matches may differ from it in case and in the white space between words.

    Return None if the query has no words.
    """
    words = case_folded(text).split()
    if not words:
        return None
    escaped = [re.escape(word) for word in words]
    return Query(
        in_read=re.compile(_WHITE.join(escaped)),
        in_markdown=re.compile(_with_markup(words)),
        word=words[0] if len(words) == 1 else None,
    )


def _with_markup(words: Sequence[str]) -> str:
    """Return a pattern for words in Markdown source, with marks between them.

    Between two words of which one has a mark beside the gap, only white space may stand. Otherwise
    a mark could be a part of the word or of the gap, and the search would try all combinations.
    """
    parts = [re.escape(words[0])]
    for before, word in pairwise(words):
        has_marks = before[-1] in _MARKS or word[0] in _MARKS
        parts += (_WHITE if has_marks else _GAP, re.escape(word))
    return "".join(parts)


class Counts:
    """The number of matches in each message, for one query.

    count() searches only texts that are new or have changed. All matches of the conversation are
    numbered from 0, in the order of the messages.
    """

    def __init__(self, query: Query | None = None) -> None:
        self._query = query
        # Key: text of a message. Value: its number of matches, from the last count().
        self._known: dict[SearchText, int] = {}
        # For each message: number of matches in all messages from the first one to this one.
        self._ends: list[int] = []

    def count(self, messages: Sequence[SearchText]) -> None:
        """Count the matches in all messages. Replace the counts of the last call."""
        counts = [self._count(search_text) for search_text in messages]
        # drops the counts of texts that no longer exist
        self._known = dict(zip(messages, counts, strict=True))
        self._ends = list(accumulate(counts))

    @property
    def total(self) -> int:
        return self._ends[-1] if self._ends else 0

    def within(self, message: int) -> int:
        """Return the number of matches in a message."""
        return self._ends[message] - self._start(message)

    def number(self, occurrence: Occurrence) -> int | None:
        """Return the number of a match in the conversation, or None if it no longer exists."""
        number = self._start(occurrence.message) + occurrence.nth
        return number if number < self._ends[occurrence.message] else None

    def occurrence(self, number: int) -> Occurrence:
        message = bisect_right(self._ends, number)
        return Occurrence(message, number - self._start(message))

    def neighbour(self, current: Occurrence | None, *, step: int, near: int) -> int:
        """Return the number of the match that is `step` matches after the current match.

        The first match follows the last one. If no match is current, return the number of the
        first match in the message with index `near` or in a later message.
        """
        number = None if current is None else self.number(current)
        if number is not None:
            return (number + step) % self.total
        first = self._start(min(near, len(self._ends)))
        return first if first < self.total else 0

    def _start(self, message: int) -> int:
        return self._ends[message - 1] if message else 0

    def _count(self, search_text: SearchText) -> int:
        if self._query is None:
            return 0
        known = self._known.get(search_text)
        return self._query.count(search_text) if known is None else known
