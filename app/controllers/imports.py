"""Import of conversations from files of this and other apps. Main thread.

The import thread takes a few conversations from the import process, then the store thread writes
them, then the next ones are read. Memory stays small. The store writes in short transactions, and the
user's actions go first (StoreLane.run_aside). A cancelled import ends after the present batch. The
written conversations stay, and a later import of the same files skips them.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app.bridge.store_lane import StoreLane
from app.bridge.tasks import TaskLane
from app.controllers.desk import Desk
from app.controllers.folders import FoldersController
from app.controllers.library import LibraryController
from app.conversation.filed import FiledConversation
from app.exchange.importing import Unreadable
from app.exchange.isolated import IsolatedImport
from app.store.conversations import ConversationStore
from app.store.errors import MessagesTakenError, StoreError
from app.store.merging import Merged, Merging
from app.words import exchange as words, problems
from engine.problem import Problem
from engine.types import ConversationId

_BATCH_CHATS = 20
_BATCH_MESSAGES = 1000
_REPORT_S = 0.5  # seconds between two reports of the progress


@dataclass(frozen=True, slots=True)
class ImportResult:
    """The outcome of an import that has ended."""

    added: int  # new conversations
    grown: int  # conversations with new messages
    present: int  # conversations that were there already
    unreadable: tuple[Unreadable, ...]
    changed: tuple[ConversationId, ...] = ()  # the new conversations, and those with new messages


@dataclass(frozen=True, slots=True)
class _Batch:
    """Conversations that were read together."""

    conversations: tuple[FiledConversation, ...]
    unreadable: tuple[Unreadable, ...]
    share: float  # share of the files that has been read
    is_last: bool


@dataclass(frozen=True, slots=True)
class _Written:
    """The outcome of writing a batch."""

    outcomes: tuple[tuple[ConversationId, Merged], ...]
    refused: tuple[Unreadable, ...]


class Imports(QObject):
    """The import that is running, if any."""

    progressed = Signal(float)  # argument: share of the files that has been read
    ended = Signal(object)  # argument: ImportResult
    failed = Signal(object)  # argument: a Problem

    def __init__(
        self,
        store: StoreLane,
        desk: Desk,
        library: LibraryController,
        folders: FoldersController,
    ) -> None:
        super().__init__()
        self._store = store
        self._desk = desk
        self._library = library
        self._folders = folders
        self._lane = TaskLane("import", self)
        self._reading: _Reading | None = None  # None while no import is running
        self._is_cancelled = False
        self._counts: Counter[Merged] = Counter()
        self._unreadable: list[Unreadable] = []
        self._changed: list[ConversationId] = []
        self._reported = 0.0  # time of the last progress

    def start(self, paths: Sequence[Path], *, now: float) -> None:
        """Import files. Do nothing while another import is running. `now` is the Unix time."""
        if self._reading is not None:
            return
        if self._store.is_lost:
            self.failed.emit(StoreError(problems.STORE_CLOSED).problem)
            return
        self._reading = _Reading(paths, now=now)
        self._is_cancelled = False
        self._counts.clear()
        self._unreadable.clear()
        self._changed.clear()
        self._reported = time.monotonic()
        self.progressed.emit(0.0)
        self._read(self._reading)

    @property
    def is_running(self) -> bool:
        return self._reading is not None

    def cancel(self) -> None:
        """End the running import after the present batch."""
        self._is_cancelled = True

    def close(self) -> None:
        """Cancel the running import, end its process, and join the thread."""
        self.cancel()
        if self._reading is not None:
            self._reading.stop()
        self._lane.stop()

    def _read(self, reading: _Reading) -> None:
        self._lane.run(reading.next_batch, self._on_read, self._on_failed)

    def _on_read(self, batch: _Batch) -> None:
        self._unreadable += batch.unreadable
        self._store.run_aside(
            _Writing(batch.conversations).step,
            lambda written: self._on_written(batch, written),
            self._on_failed,
        )

    def _on_written(self, batch: _Batch, written: _Written) -> None:
        self._unreadable += written.refused
        for conversation_id, outcome in written.outcomes:
            self._counts[outcome] += 1
            if outcome is not Merged.PRESENT:
                self._changed.append(conversation_id)
            if outcome is Merged.GROWN:
                self._desk.load_again(conversation_id)
        if batch.is_last or self._is_cancelled or self._reading is None:
            self._end()
            return
        now = time.monotonic()
        if now - self._reported >= _REPORT_S:
            self._reported = now
            self.progressed.emit(batch.share)
        self._read(self._reading)

    def _on_failed(self, problem: Problem) -> None:
        self._end()
        self.failed.emit(problem)

    def _end(self) -> None:
        if self._reading is not None:
            self._reading.stop()
        self._reading = None
        self._folders.load_again()
        self._library.load_again()
        counts = self._counts
        self.ended.emit(
            ImportResult(
                added=counts[Merged.ADDED],
                grown=counts[Merged.GROWN],
                present=counts[Merged.PRESENT],
                unreadable=tuple(self._unreadable),
                changed=tuple(self._changed),
            )
        )


class _Reading:
    """The files that are read. Only the import thread uses it, except `stop`."""

    def __init__(self, paths: Sequence[Path], *, now: float) -> None:
        self._import = IsolatedImport(paths, now=now)
        self._found: Iterator[FiledConversation | Unreadable] = self._import.found()
        self.stop = self._import.stop

    def next_batch(self) -> _Batch:
        conversations: list[FiledConversation] = []
        unreadable: list[Unreadable] = []
        num_messages = 0
        is_last = True
        for one in self._found:
            if isinstance(one, Unreadable):
                unreadable.append(one)
            else:
                conversations.append(one)
                num_messages += len(one.conversation.nodes)
            num_items = len(conversations) + len(unreadable)
            if num_items >= _BATCH_CHATS or num_messages >= _BATCH_MESSAGES:
                is_last = False
                break
        return _Batch(tuple(conversations), tuple(unreadable), self._import.share, is_last)


class _Writing:
    """The conversations of a batch that are written. Only the store thread uses it."""

    def __init__(self, conversations: Sequence[FiledConversation]) -> None:
        self._left = deque(Merging(one) for one in conversations)
        self._outcomes: list[tuple[ConversationId, Merged]] = []
        self._refused: list[Unreadable] = []

    def step(self, store: ConversationStore) -> _Written | None:
        """Write a part of a conversation. Return the outcomes after the last one."""
        if self._left:
            self._write(self._left[0], store)
        if self._left:
            return None
        return _Written(tuple(self._outcomes), tuple(self._refused))

    def _write(self, merging: Merging, store: ConversationStore) -> None:
        conversation = merging.conversation
        try:
            merged = merging.step(store)
        except MessagesTakenError:
            self._refused.append(Unreadable(name=conversation.title, reason=words.TAKEN))
        else:
            if merged is None:
                return
            self._outcomes.append((conversation.conversation_id, merged))
        self._left.popleft()
