"""Entries of the quick switcher: chats, commands and models, ranked by typed letters. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from heapq import nlargest

from app.viewmodels.fuzzy import FuzzyQuery, Name
from app.words import switcher as words

SHOWN = 50  # largest number of entries that are shown


class EntryKind(Enum):
    """The kinds of entries. A value is the advantage over a kind with an equal match."""

    CHAT = 4.0
    COMMAND = 2.0
    MODEL = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Something that the switcher can open or run."""

    kind: EntryKind
    key: str  # ConversationId, CommandId, or path of the model
    name: Name
    note: str = ""  # text at the right, such as a folder, a shortcut or "In use"
    is_archived: bool = False

    @property
    def spoken(self) -> str:
        """Text for screen readers."""
        return ", ".join(
            part for part in (self.name.text, words.KINDS[self.kind.name], self.note) if part
        )


@dataclass(frozen=True, slots=True)
class Found:
    """An entry, and the ranges of its name that match."""

    entry: Entry
    places: tuple[tuple[int, int], ...] = ()


@dataclass(slots=True)
class Entries:
    """All entries, chats first and newest first. Each search narrows the one before if it can."""

    all: Sequence[Entry]
    _words: str = ""
    _left: Sequence[Entry] = field(default_factory=tuple[Entry, ...])

    def find(self, text: str) -> list[Found]:
        """Return the entries that match, the best first. Without letters: the newest chats."""
        query = FuzzyQuery.of(text)
        if not query.words:
            self._words, self._left = "", ()
            newest = (one for one in self.all if one.kind is EntryKind.CHAT and not one.is_archived)
            return [Found(one) for one, _number in zip(newest, range(SHOWN), strict=False)]
        # A name that lacks the shorter words lacks the longer ones too.
        narrows = bool(self._words) and text.startswith(self._words)
        pool = self._left if narrows else self.all
        scored = [(query.score(one.name), at, one) for at, one in enumerate(pool)]
        scored = [one for one in scored if one[0] >= 0.0]
        self._words, self._left = text, [one for _score, _at, one in scored]
        best = nlargest(
            SHOWN,
            scored,
            key=lambda one: (one[0] + one[2].kind.value - 20.0 * one[2].is_archived, -one[1]),
        )
        return [Found(one, tuple(query.places(one.name))) for _score, _at, one in best]
