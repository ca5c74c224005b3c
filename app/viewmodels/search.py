"""Rows of the search results: conversations, each with its found messages. No Qt, no I/O."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from app.conversation.tree import NodeId
from app.store.search import ConversationHits, Excerpt, FoundMessage
from app.words import window as words
from engine.types import ConversationId, Role

_MARKS = re.compile(r"\*\*|`+")
_BEFORE = 24  # characters shown before the match, so that the match is on the first two lines


@dataclass(frozen=True, slots=True)
class FoundRow:
    """One row: a conversation if node_id is None, otherwise a message of it.

    text[start:end] is the match. It is empty in the row of a conversation.
    """

    conversation_id: ConversationId
    node_id: NodeId | None
    text: str
    spoken: str
    start: int = 0
    end: int = 0
    file: str = ""  # name of the attached file that has the match


def found_rows(found: Sequence[ConversationHits]) -> list[FoundRow]:
    """Return the rows of all found conversations, each followed by those of its messages."""
    rows: list[FoundRow] = []
    for one in found:
        spoken = words.hits_spoken(title=one.title, count=len(one.hits))
        rows.append(FoundRow(one.conversation_id, None, one.title, spoken))
        rows.extend(_row_of(one.conversation_id, hit) for hit in one.hits)
    return rows


def _row_of(conversation_id: ConversationId, hit: FoundMessage) -> FoundRow:
    shown = _with_name(hit.file, _without_far_words(_without_marks(hit.excerpt)))
    author = words.YOU if hit.role is Role.USER else words.ANSWER
    spoken = words.hit_spoken(author=author, text=shown.text)
    place = shown.start, shown.end
    return FoundRow(conversation_id, hit.node_id, shown.text, spoken, *place, hit.file)


def _with_name(name: str, excerpt: Excerpt) -> Excerpt:
    """Return an excerpt of a file with its name in front."""
    lead = f"{name}: " if name else ""
    start, end = excerpt.start + len(lead), excerpt.end + len(lead)
    return Excerpt(text=lead + excerpt.text, start=start, end=end)


def _without_marks(excerpt: Excerpt) -> Excerpt:
    """Return an excerpt without the marks of bold text and code."""
    start, end = excerpt.start, excerpt.end
    head, match, tail = (
        _MARKS.sub("", part)
        for part in (excerpt.text[:start], excerpt.text[start:end], excerpt.text[end:])
    )
    return Excerpt(text=head + match + tail, start=len(head), end=len(head) + len(match))


def _without_far_words(excerpt: Excerpt) -> Excerpt:
    """Return an excerpt with at most _BEFORE characters before its match."""
    if excerpt.start <= _BEFORE:
        return excerpt
    space = excerpt.text.find(" ", excerpt.start - _BEFORE, excerpt.start)
    cut = space + 1 if space >= 0 else excerpt.start - _BEFORE
    return Excerpt(
        text="…" + excerpt.text[cut:], start=excerpt.start - cut + 1, end=excerpt.end - cut + 1
    )
