"""The search for passages of answers in the files that the answers could use. Main thread.

A worker thread searches one document for one answer at a time. The results of the conversations
that were shown last are kept.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import QObject, Signal

from app.bridge.tasks import TaskLane
from app.conversation.attachments import Attachment
from app.conversation.quotes import MAX_DOCUMENT, DocumentIndex, QuotedDocument, QuotedRange
from app.conversation.tree import Conversation, MessageStatus, NodeId, shown_path
from app.viewmodels.items import KEPT
from engine.types import ConversationId, Role

_MAX_INDEXED = MAX_DOCUMENT  # characters of all indexed documents, if there are several


_Key = tuple[NodeId, str, tuple[str, ...]]  # of a search: answer, its text, digests of documents


@dataclass(frozen=True, slots=True)
class _Found:
    key: _Key
    quoted: tuple[QuotedDocument, ...]


@dataclass(frozen=True, slots=True)
class _Search:
    """An answer and the documents above it. The digests stand for the texts of the documents."""

    node_id: NodeId
    text: str
    documents: tuple[Attachment, ...]

    @property
    def key(self) -> _Key:
        return self.node_id, self.text, tuple(one.digest for one in self.documents)


class QuoteSearch(QObject):
    """The documents that each answer quotes."""

    changed = Signal(object)  # argument: ConversationId whose answers were searched

    def __init__(self) -> None:
        super().__init__()
        self._lane = TaskLane("quotes")
        self._finder = _Finder()
        # Results in the conversations that were shown last. The key tells for which text and
        # documents.
        self._found: OrderedDict[ConversationId, dict[NodeId, _Found]] = OrderedDict()
        self._asked: set[_Key] = set()
        self._last: tuple[Conversation, Mapping[NodeId, tuple[QuotedDocument, ...]]] | None = None

    def stop(self) -> None:
        self._lane.stop()

    def of(self, conversation: Conversation) -> Mapping[NodeId, tuple[QuotedDocument, ...]]:
        """Return the quoted documents of the ended answers on show, as far as they are known.

        The others are searched; `changed` is emitted when all are known.
        """
        if self._last is not None and _is_same(self._last[0], conversation):
            return self._last[1]
        known: dict[NodeId, tuple[QuotedDocument, ...]] = {}
        missing: list[_Search] = []
        found = self._found.get(conversation.conversation_id, {})
        for search in _searches(conversation):
            earlier = found.get(search.node_id)
            if earlier is not None and earlier.key == search.key:
                known[search.node_id] = earlier.quoted
            elif search.key not in self._asked:
                missing.append(search)
        self._last = conversation, known
        if missing:
            self._asked.update(search.key for search in missing)
            self._lane.run_aside(
                partial(self._finder.step, _Work(missing)),
                partial(self._on_found, conversation.conversation_id),
            )
        return known

    def _on_found(self, conversation_id: ConversationId, results: list[_Found]) -> None:
        found = self._found.pop(conversation_id, {})
        for one in results:
            self._asked.discard(one.key)
            found[one.key[0]] = one
        self._found[conversation_id] = found
        if len(self._found) > KEPT:
            self._found.popitem(last=False)
        self._last = None
        if any(one.quoted for one in results):
            self.changed.emit(conversation_id)


class _Finder:
    """The indices of the documents that were searched last. Used on the worker thread."""

    def __init__(self) -> None:
        self._indices: OrderedDict[str, tuple[int, DocumentIndex]] = OrderedDict()

    def step(self, work: _Work) -> list[_Found] | None:
        """Search one document for one answer. Return the results when all are done, else None."""
        search, document = work.waiting.pop()
        ranges = self._index(document).passages(search.text)
        if ranges:
            work.ranges[search.key, document.digest] = ranges
        return None if work.waiting else work.results()

    def _index(self, document: Attachment) -> DocumentIndex:
        known = self._indices.pop(document.digest, None)
        if known is None:
            length = min(len(document.text), MAX_DOCUMENT)
            known = length, DocumentIndex(document.text)
        self._indices[document.digest] = known
        while len(self._indices) > 1 and self._num_indexed > _MAX_INDEXED:
            self._indices.popitem(last=False)
        return known[1]

    @property
    def _num_indexed(self) -> int:
        return sum(length for length, _ in self._indices.values())


class _Work:
    """The searches of one conversation, in steps of one document for one answer."""

    def __init__(self, searches: Sequence[_Search]) -> None:
        self._searches = searches
        pairs = [(search, document) for search in searches for document in search.documents]
        # A document is searched for all answers before the next one, so it is indexed once.
        self.waiting = sorted(pairs, key=lambda pair: pair[1].digest)
        self.ranges: dict[tuple[_Key, str], tuple[QuotedRange, ...]] = {}

    def results(self) -> list[_Found]:
        return [_Found(search.key, tuple(self._quoted(search))) for search in self._searches]

    def _quoted(self, search: _Search) -> Iterator[QuotedDocument]:
        for document in search.documents:
            ranges = self.ranges.get((search.key, document.digest), ())
            if ranges:
                yield QuotedDocument(document, ranges)


def _searches(conversation: Conversation) -> list[_Search]:
    """Return the ended answers of the visible branch that have documents above them."""
    documents: dict[tuple[str, str], Attachment] = {}
    searches: list[_Search] = []
    for node in shown_path(conversation):
        if node.role is Role.USER:
            texts = (one for one in node.attachments if one.text and one.picture is None)
            documents.update({(one.name, one.digest): one for one in texts})
        elif documents and node.content and node.status is not MessageStatus.STREAMING:
            searches.append(_Search(node.node_id, node.content, tuple(documents.values())))
    return searches


def _is_same(one: Conversation, other: Conversation) -> bool:
    """Return True if two states of a conversation show the same stored messages."""
    return one.nodes is other.nodes and one.children is other.children and one.shown is other.shown
