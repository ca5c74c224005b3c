"""Passages of an answer that stand word for word in an attached document. No Qt, no I/O.

Two texts are compared by their words: case, blanks, line breaks, hyphens, quotes, punctuation and
Markdown marks do not count. The index of a document has every fourth sequence of five words, and
each run of eight equal words contains at least one of them.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from app.conversation.attachments import Attachment

MIN_WORDS: Final = 8  # of a passage
MIN_LETTERS: Final = 16  # of a passage, so that eight Chinese characters are not enough
MAX_DOCUMENT: Final = 1_000_000  # characters at the start of a document that are searched
MAX_RANGES: Final = 1_000  # places of passages, so that the window can mark them fast
MAX_ANSWER: Final = 200_000  # characters at the start of an answer that are searched
_GRAM: Final = 5  # words of an indexed sequence
_STEP: Final = MIN_WORDS + 1 - _GRAM  # words from one indexed sequence to the next
_MAX_PLACES: Final = 16  # indexed places of one sequence of words

# A hyphen joins two parts of a word, also at the end of a line, where it may divide a word.
_WORD = re.compile(r"[\w\u00ad\u0300-\u036f]+(?:-(?:\r?\n[ \t]{0,8})?[\w\u00ad\u0300-\u036f]+)*")
_JOINTS = str.maketrans("", "", "-\r\n \t\u00ad")
_IDEOGRAPH = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")


@dataclass(frozen=True, slots=True)
class QuotedRange:
    """The place of a passage in the text of a document, in characters."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class QuotedDocument:
    """A document, and the places in it of the passages of one answer.

    The passages have the order of the answer, and the places of a passage that of the document.
    """

    document: Attachment
    ranges: tuple[QuotedRange, ...]


@dataclass(frozen=True, slots=True)
class QuotedFile:
    """The row of a quoted document below an answer."""

    name: str
    num_passages: int  # places in the document with words of the answer


@dataclass(frozen=True, slots=True)
class _Word:
    text: str  # normalised
    start: int
    end: int


class DocumentIndex:
    """The words of a document, and the places of its sequences of words."""

    def __init__(self, text: str) -> None:
        self._ids: dict[str, int] = {}
        self._words = array("l")
        self._starts = array("l")
        self._ends = array("l")
        for word in _words(text[:MAX_DOCUMENT]):
            self._words.append(self._ids.setdefault(word.text, len(self._ids)))
            self._starts.append(word.start)
            self._ends.append(word.end)
        self._bytes = self._words.tobytes()
        self._places: dict[tuple[int, ...], list[int]] = {}
        for place in range(0, len(self._words) - _GRAM + 1, _STEP):
            places = self._places.setdefault(tuple(self._words[place : place + _GRAM]), [])
            if len(places) < _MAX_PLACES:
                places.append(place)

    def passages(self, answer: str) -> tuple[QuotedRange, ...]:
        """Return all places of the passages that stand in the answer, each once.

        The time is linear in the length of the answer. If a sequence of words stands in the
        document very often, the longest passage is chosen at its first places. After MAX_RANGES
        places, no further passage is looked for.
        """
        words = list(_words(answer[:MAX_ANSWER]))
        ids = [self._ids.get(word.text, -1) for word in words]
        found: dict[QuotedRange, None] = {}
        at = taken = 0
        while at + _GRAM <= len(ids) and len(found) < MAX_RANGES:
            first, length, place = self._longest(ids, at, taken)
            letters = sum(
                len(word.text) for word in words[first : first + min(length, MIN_LETTERS)]
            )
            if length < MIN_WORDS or letters < MIN_LETTERS:
                at += 1
                continue
            found.update(dict.fromkeys(self._ranges(place, length)))
            at = taken = first + length
        return tuple(found)

    def _ranges(self, place: int, length: int) -> Iterator[QuotedRange]:
        """Yield each place in the document of the `length` words that stand at `place`."""
        size = self._words.itemsize
        passage = self._bytes[place * size : (place + length) * size]
        at = self._bytes.find(passage)
        while at >= 0:
            first, rest = divmod(at, size)
            if not rest:
                yield QuotedRange(self._starts[first], self._ends[first + length - 1])
            at = self._bytes.find(passage, at + (1 if rest else len(passage)))

    def _longest(self, ids: Sequence[int], at: int, taken: int) -> tuple[int, int, int]:
        """Return the longest run of equal words around the sequence at a word of the answer.

        taken: first word of the answer that belongs to no earlier passage.

        Returns:
            The run's first word in the answer, its number of words, and its first word in the
            document; (at, 0, 0) if the sequence is not indexed.
        """
        best = (at, 0, 0)
        for place in self._places.get(tuple(ids[at : at + _GRAM]), ()):
            back = 0
            while (
                at - back > taken
                and place > back
                and ids[at - back - 1] == self._words[place - back - 1]
            ):
                back += 1
            length = back + _GRAM
            first, start = at - back, place - back
            while (
                first + length < len(ids)
                and start + length < len(self._words)
                and ids[first + length] == self._words[start + length]
            ):
                length += 1
            if length > best[1]:
                best = (first, length, start)
        return best


def _words(text: str) -> Iterator[_Word]:
    for match in _WORD.finditer(text):
        raw, start = match[0], match.start()
        if raw.isascii():
            word = raw.lower().strip("_")
            if "-" in word:
                word = word.translate(_JOINTS)
            if word:
                yield _Word(word, start, match.end())
            continue
        if _IDEOGRAPH.search(raw):
            yield from _characters(raw, start)
            continue
        word = unicodedata.normalize("NFKC", raw).casefold().translate(_JOINTS).strip("_")
        if word:
            yield _Word(word, start, match.end())


def _characters(raw: str, start: int) -> Iterator[_Word]:
    """Yield each character of a text without blanks between its words."""
    for at, character in enumerate(raw, start):
        if character.isalnum():
            yield _Word(character.casefold(), at, at + 1)
