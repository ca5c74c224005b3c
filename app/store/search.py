"""Full-text search over all messages, with an SQLite FTS5 index (https://sqlite.org/fts5.html).

Triggers in the database keep the index up to date (schema.py). They index the text that
`search_text` returns. A streaming reply is indexed when it ends. For a database of an earlier
version, `index_slice` indexes the old messages, newest first. The table search_progress has the
numbers of the messages that are not indexed yet.

The index has no copy of the text. `find` therefore loads the text of a hit from the table messages
and looks for the place of the match in it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from app.conversation.folding import fold, search_text
from app.conversation.quotes import QuotedRange
from app.conversation.text import clean_text
from app.conversation.tree import NodeId
from app.store import statements
from app.store.database import Database, Value
from engine.types import ConversationId, Role

FIRST_HITS = 50
FIRST_TITLES = 20
SLICE_MESSAGES = 50  # messages that one slice indexes, or of which it finds the sizes
SLICE_BYTES = 100_000
_MAX_TERMS = 16
_MAX_TERM_LEN = 64
_BEFORE, _AFTER = 40, 120  # characters of an excerpt before and after the match
_SLICE = 20_000  # characters of an attachment that are folded at once
_PARTS = re.compile(r'"([^"]*)"?|([^\s"]+)')
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFilter:
    """Conditions on the found messages. None means no condition."""

    since: float | None = None  # Unix seconds, inclusive
    until: float | None = None  # Unix seconds, exclusive
    model_name: str | None = None  # only replies of this model
    folder_id: str | None = None  # only conversations in this folder
    archived: bool | None = None  # only archived conversations, or only the others


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """A piece of a message on one line. text[start:end] is the match; empty if not located."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundMessage:
    """A found message."""

    node_id: NodeId
    role: Role
    created_at: float
    excerpt: Excerpt
    file: str = ""  # name of the attached file that has the match; "" for the message itself


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationHits:
    """The found messages of one conversation, newest first."""

    conversation_id: ConversationId
    title: str
    updated_at: float
    hits: tuple[FoundMessage, ...]


class _Title(NamedTuple):
    """A title, and its text as the search compares it."""

    conversation_id: ConversationId
    title: str
    updated_at: float
    folded: str


class MessageSearch:
    """The search index of a database. Use on the store thread only."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._titles: list[_Title] = []
        # Number of changes of the database when the titles were read, and their conditions.
        self._titles_at: tuple[int, tuple[Value, ...]] = (-1, ())

    def index_slice(self) -> bool:
        """Index some messages of an earlier version. Return True if more messages are left."""
        first, last = self._pending()
        if first > last:
            return False
        sizes = self._database.rows(
            statements.SEARCH_SIZES, (first, last, SLICE_MESSAGES, SLICE_BYTES)
        )
        start = sizes[-1][0] if sizes else first
        with self._database.transaction():
            self._database.run(statements.SEARCH_INDEX, (start, last))
            self._database.run(statements.SEARCH_DONE, (start,))
        return True

    def find(
        self, words: str, only: SearchFilter | None = None, *, limit: int = FIRST_HITS
    ) -> tuple[ConversationHits, ...]:
        """Return the newest messages that contain all words, grouped by conversation.

        A word matches every word that begins with it. Words in double quotes match as a phrase.
        Case, accents and punctuation are ignored. A single letter matches only as a whole word, and
        is not searched for alone.
        """
        if not is_searchable(words):
            return ()
        terms = tuple(query_terms(words))
        only = only or SearchFilter()
        rows = self._database.rows(
            statements.SEARCH_FIND,
            (
                " AND ".join(map(_fts_term, terms)),
                only.since,
                only.until,
                only.model_name,
                limit,
                only.folder_id,
                only.archived,
            ),
        )
        found = [(*row[:6], "", *row[6:]) for row in rows]
        found = [*found, *self._find_attached(terms, only, limit)]
        # Newest first; a message that is found by its own text is not found by a file again.
        by_message = {row[3]: row for row in sorted(found, key=_number_and_own)}
        newest = sorted(by_message.values(), key=_number_and_own, reverse=True)[:limit]
        gone = self._below_deleted({str(row[0]) for row in newest})
        shown = [row for row in newest if row[3] not in gone]
        return _grouped(shown, match_pattern(terms))

    def _find_attached(
        self, terms: tuple[str, ...], only: SearchFilter, limit: int
    ) -> list[tuple[Value, ...]]:
        """Return the rows of messages with an attachment that contains all terms."""
        query = " AND ".join(map(_fts_term, terms))
        return self._database.rows(
            statements.SEARCH_ATTACHMENTS,
            (
                query,
                only.since,
                only.until,
                only.model_name,
                limit,
                only.folder_id,
                only.archived,
            ),
        )

    def find_anywhere(
        self, words: str, only: SearchFilter | None = None
    ) -> tuple[ConversationHits, ...]:
        """Return conversations with these words in the title, then those with them in a message."""
        by_text = self.find(words, only)
        known = {found.conversation_id for found in by_text}
        by_title = self.find_titles(words, only)
        titled = {found.conversation_id for found in by_title}
        return (
            *(found for found in by_text if found.conversation_id in titled),
            *(found for found in by_title if found.conversation_id not in known),
            *(found for found in by_text if found.conversation_id not in titled),
        )

    def titles_by_model(self, path: str, start: str | None = None) -> tuple[str, ...]:
        """Return the titles of the conversations in which a model has answered, newest first.

        Args:
            path: the path of the model.
            start: the beginning of the paths of other revisions of it; None if there are none.
        """
        rows = self._database.rows(statements.TITLES_BY_MODEL, (path, start))
        return tuple(str(title) for (title,) in rows)

    def find_titles(
        self, words: str, only: SearchFilter | None = None, *, limit: int = FIRST_TITLES
    ) -> tuple[ConversationHits, ...]:
        """Return the newest conversations whose titles contain all words, without their messages.

        A title has no model: with a condition on the model, only messages are found.
        """
        patterns = [match_pattern((term,)) for term in query_terms(words)]
        only = only or SearchFilter()
        if not patterns or only.model_name is not None:
            return ()
        conditions = (only.since, only.until, only.folder_id, only.archived)
        found = (
            ConversationHits(
                conversation_id=one.conversation_id,
                title=one.title,
                updated_at=one.updated_at,
                hits=(),
            )
            for one in self._titles_of(conditions)
            if all(pattern.search(one.folded) for pattern in patterns)
        )
        return tuple(islice(found, limit))

    def _titles_of(self, conditions: tuple[Value, ...]) -> list[_Title]:
        """Return the titles that fulfil the conditions of SEARCH_TITLES, newest first.

        They are read again after a change of the database. Reading and folding 20,000 titles takes
        35 ms, and each letter of a search needs them.
        """
        state = (self._database.num_changes, conditions)
        if state != self._titles_at:
            rows = self._database.rows(statements.SEARCH_TITLES, conditions)
            self._titles = [
                _Title(ConversationId(str(key)), str(title), _number(at), _folded(str(title)))
                for key, title, at in rows
            ]
            self._titles_at = state
        return self._titles

    def _pending(self) -> tuple[int, int]:
        """Return the first and the last message number that is not indexed yet."""
        ((first, last),) = self._database.rows(statements.SEARCH_PENDING)
        assert isinstance(first, int)
        assert isinstance(last, int)
        return first, last

    def _below_deleted(self, conversations: Iterable[str]) -> set[object]:
        """Return the ids of the messages that are deleted, or below a deleted message."""
        found: set[object] = set()
        for conversation_id in conversations:
            rows = self._database.rows(statements.DELETED_MESSAGES, (conversation_id,))
            found.update(node_id for (node_id,) in rows)
        return found


def is_searchable(words: str) -> bool:
    """Return True if the words are more than single letters."""
    return not all(map(_is_letter, query_terms(words)))


def excerpt(content: str, place: re.Pattern[str]) -> Excerpt:
    """Return the surroundings of the first match of a pattern in the folded text."""
    folded, offsets = fold(content)
    match = place.search(folded)
    if match is None:
        return _around(content, 0, 0)
    return _around(content, offsets[match.start()], offsets[match.end()])


def _around(content: str, start: int, end: int) -> Excerpt:
    """Return a match and the characters around it on one line."""
    before = " ".join(content[max(0, start - _BEFORE) : start].split())
    before += " " if start and content[start - 1].isspace() and before else ""
    marked = " ".join(content[start:end].split())
    after = content[end : end + _AFTER]
    tail = " " * after[:1].isspace() + " ".join(after.split())
    head = ("…" if start > _BEFORE else "") + before
    tail += "…" if end + _AFTER < len(content) else ""
    return Excerpt(text=head + marked + tail, start=len(head), end=len(head) + len(marked))


def file_excerpt(text: str, place: re.Pattern[str]) -> Excerpt:
    """Return the surroundings of the first match of a pattern in a text that may be long."""
    found = next(file_matches(text, place), QuotedRange(0, 0))
    return _around(text, found.start, found.end)


def file_matches(text: str, place: re.Pattern[str]) -> Iterator[QuotedRange]:
    """Yield the places of a pattern in a text that may be long.

    The text is searched in slices, because folding it at once takes seconds.
    """
    for start in range(0, len(text), _SLICE):
        before = max(0, start - 1)  # the character before the slice tells if a word begins there
        folded, offsets = fold(text[before : start + _SLICE + _AFTER])
        for match in place.finditer(folded):
            first, end = before + offsets[match.start()], before + offsets[match.end()]
            if start <= first < start + _SLICE:
                yield QuotedRange(first, end)


def _grouped(
    rows: Iterable[tuple[Value, ...]], pattern: re.Pattern[str]
) -> tuple[ConversationHits, ...]:
    """Return rows of found messages as hits of their conversations, in the order of the rows."""
    groups: dict[str, list[FoundMessage]] = {}
    heads: dict[str, tuple[str, float]] = {}
    for conversation_id, title, updated_at, node_id, role, created_at, name, text, _ in rows:
        hit = FoundMessage(
            node_id=NodeId(str(node_id)),
            role=Role(str(role)),
            created_at=_number(created_at),
            excerpt=(file_excerpt if name else excerpt)(str(text), pattern),
            file=str(name),
        )
        groups.setdefault(str(conversation_id), []).append(hit)
        heads[str(conversation_id)] = str(title), _number(updated_at)
    return tuple(
        ConversationHits(
            conversation_id=ConversationId(key),
            title=heads[key][0],
            updated_at=heads[key][1],
            hits=tuple(hits),
        )
        for key, hits in groups.items()
    )


def _number_and_own(row: tuple[Value, ...]) -> tuple[float, bool]:
    """Return the order of a row: the number of the message, then its own text before files."""
    return _number(row[8]), row[6] == ""


def query_terms(words: str) -> Iterator[str]:
    """Yield the words and phrases of a query, without punctuation. A phrase contains spaces."""
    text = unicodedata.normalize("NFKC", clean_text(words[: _MAX_TERMS * _MAX_TERM_LEN]))
    parts = list(_PARTS.finditer(text))[:_MAX_TERMS]
    for part in parts:
        text = " ".join(_WORD.findall(part[1] or part[2] or ""))[:_MAX_TERM_LEN].strip()
        if text:
            yield text


def _is_letter(term: str) -> bool:
    return len(term) == 1 and search_text(term) == term


def _fts_term(term: str) -> str:
    # Terms contain only letters, digits, underscores and spaces, so no quote needs escaping.
    # search_text() adds a space after a Chinese, Japanese or Korean character, which is a word.
    text = search_text(term)
    is_whole = _is_letter(term) or text.endswith(" ")
    return f'"{text}"' if is_whole else f'"{text}" *'


def match_pattern(terms: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern that finds the first of some terms in folded text."""
    patterns = (
        r"[\W_]+".join(re.escape(word) for word in fold(term)[0].replace("_", " ").split())
        for term in terms
    )
    # A word begins after a character that is no letter, or anywhere in Chinese or Japanese text.
    return re.compile("|".join(rf"(?<![a-z0-9])(?:{pattern})" for pattern in patterns if pattern))


@lru_cache(maxsize=32_768)
def _folded(title: str) -> str:
    return fold(title)[0]


def _number(value: object) -> float:
    assert isinstance(value, int | float)
    return float(value)
