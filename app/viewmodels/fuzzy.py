"""Matching of a few typed letters with names: whole words, parts of words, initials. Pure.

Case and accents do not count. Each word of the query must match the name in one of these ways, the
best first: at the start of a word, inside a word, or letter by letter with gaps.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from app.conversation.folding import fold

_WORD_START, _INSIDE, _SPREAD = 100.0, 60.0, 30.0  # values of the three ways
_MAX_WORDS = 6
_NO_MATCH = -1.0


@dataclass(frozen=True, slots=True)
class Name:
    """A name that can be found, with its folded text."""

    text: str
    folded: str

    @classmethod
    def of(cls, text: str) -> Name:
        return cls(text, fold(text)[0])


@dataclass(frozen=True, slots=True)
class FuzzyQuery:
    """The words that the user typed."""

    words: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> FuzzyQuery:
        return cls(tuple(fold(text)[0].split()[:_MAX_WORDS]))

    def score(self, name: Name) -> float:
        """Return how well a name matches: a higher number is better, a negative one is no match."""
        total = 0.0
        for word in self.words:
            value = _score(word, name.folded)
            if value < 0.0:
                return _NO_MATCH
            total += value
        # Among equal matches the shorter name is better.
        return max(0.0, total - min(len(name.folded), 200) * 0.02)

    def places(self, name: Name) -> list[tuple[int, int]]:
        """Return the ranges of the name's text that match, as (start, end), in order."""
        offsets = fold(name.text)[1]
        found = [place for word in self.words for place in _places(word, name.folded)]
        return [(offsets[start], offsets[end]) for start, end in _merged(found)]


def _score(word: str, text: str) -> float:
    at = text.find(word)
    if at >= 0:
        start = _word_start(word, text)
        return _INSIDE if start is None else _WORD_START - min(start, 50) * 0.2
    match = _spread(word).search(text)
    if match is None:
        return _NO_MATCH
    gaps = match.end() - match.start() - len(word)
    return max(1.0, _SPREAD - gaps * 0.5)


def _places(word: str, text: str) -> list[tuple[int, int]]:
    at = _word_start(word, text)
    at = text.find(word) if at is None else at
    if at >= 0:
        return [(at, at + len(word))]
    match = _spread(word).search(text)
    return [] if match is None else [match.span(group) for group in range(1, len(word) + 1)]


def _word_start(word: str, text: str) -> int | None:
    """Return the first place of a word in the text that is the start of a word there."""
    at = text.find(word)
    while at >= 0:
        if at == 0 or not text[at - 1].isalnum():
            return at
        at = text.find(word, at + 1)
    return None


@lru_cache(maxsize=64)
def _spread(word: str) -> re.Pattern[str]:
    """Return a pattern with a group for each letter. Its time is linear: no gap has its letter."""
    first, *others = word
    gaps = (f"[^{re.escape(letter)}]*({re.escape(letter)})" for letter in others)
    return re.compile(f"({re.escape(first)})" + "".join(gaps), re.DOTALL)


def _merged(places: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(places):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged
