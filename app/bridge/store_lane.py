"""Access to the conversation store from the main thread.

The main thread must not wait for the disk, and only one thread may use the SQLite connection. Each
call is therefore queued to one worker thread, the store lane, which runs the calls in order.
Imports, exports and the indexing of old messages run in short steps, and only while no call waits.
Results and errors come back as callbacks on the main thread (tasks.py). For each conversation, the
lane keeps the value that was last written. A save writes only the difference from that value. If a
save fails, the value stays, so the next save writes the failed changes too.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from PySide6.QtCore import QObject, QTimer, Signal

from app.bridge.jobs import Job
from app.bridge.tasks import TaskLane
from app.conversation.tree import Conversation
from app.store.conversations import ConversationStore, OpenedStore
from app.store.errors import StoreError
from app.words import problems as words
from engine.problem import Problem
from engine.types import ConversationId

T = TypeVar("T")

ROOM_MS = 5000  # time between two looks for free space, while the disk is full

OpenStore = Callable[[], OpenedStore]


class StoreLane(QObject):
    """The conversation store: called from the main thread, runs on the store thread."""

    opened = Signal()
    purged = Signal(object)  # argument: tuple of ConversationId, removed for good at the opening
    # argument: a Problem. The store cannot be opened, so every call fails until open() succeeds.
    unavailable = Signal(object)
    unchecked = Signal()  # the opened database should be checked (OpenedStore.is_checked)
    rescued = Signal(object)  # argument: a Problem; a damaged database was replaced at the opening
    # argument: a Problem. The disk is full, so the store can only be read.
    became_read_only = Signal(object)
    became_writable = Signal()  # the disk has room again
    failed = Signal(object)  # argument: the Problem of a failed call that has no on_error callback
    used = Signal()  # a call was queued, so the database may change

    _reopened = Signal(object)  # argument: the OpenedStore; emitted by the store thread

    def __init__(self, open_store: OpenStore, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._lane = TaskLane("store", self)
        # The receivers are called on the main thread: this object belongs to it.
        self._reopened.connect(self._on_reopened)
        self._worker = _StoreWorker(open_store, self._reopened.emit)
        # Any call opens the store again once the disk has room.
        self._look_for_room = QTimer(self, interval=ROOM_MS)
        self._look_for_room.timeout.connect(lambda: self.run(lambda _store: None))
        self.is_lost = False  # True while the store could not be opened

    def open(self) -> None:
        """Queue the opening of the store, also after it has failed. Later calls run after it."""
        self._lane.run(self._worker.open, self._on_opened, self._on_unavailable)

    def run(
        self,
        call: Callable[[ConversationStore], T],
        on_result: Callable[[T], None] | None = None,
        on_error: Callable[[Problem], None] | None = None,
    ) -> None:
        self._queue(lambda: call(self._worker.store), on_result, on_error)

    def run_aside(
        self,
        step: Callable[[ConversationStore], T | None],
        on_result: Callable[[T], None] | None = None,
        on_error: Callable[[Problem], None] | None = None,
    ) -> None:
        """Call `step` again and again, until it returns the result. The calls of run() go first.

        A step should take no more than about 0.1 s, because a call may wait for one.
        """
        self._lane.run_aside(
            lambda: step(self._worker.store), on_result, self._unless_lost(on_error)
        )

    def call_in_job(self, job: Job, step: Callable[[ConversationStore], T | None]) -> T:
        """Call `step` like run_aside, and return its result. Call this on the thread of a job.

        The job must end before the store is closed, because it waits for the store's thread.

        Raises:
            EngineError: the step failed.
            StoppedError: the job was stopped. The step that was running has ended.
        """
        answer: Future[T] = Future()

        def work() -> bool | None:
            try:
                job.require_running()
                result = step(self._worker.store)
            except BaseException as error:  # noqa: BLE001 — raised again on the job's thread
                answer.set_exception(error)
                return True
            if result is None:
                return None
            answer.set_result(result)
            return True

        self._lane.run_aside(work)
        return answer.result()

    def save(
        self,
        conversation: Conversation,
        on_result: Callable[[None], None],
        on_error: Callable[[Problem], None],
    ) -> None:
        """Write the differences between a conversation and its last written value."""
        self._queue(lambda: self._worker.save(conversation), on_result, on_error)

    def load(
        self,
        conversation_id: ConversationId,
        on_result: Callable[[Conversation], None],
        on_error: Callable[[Problem], None],
    ) -> None:
        self._queue(lambda: self._worker.load(conversation_id), on_result, on_error)

    def release(self, conversation_id: ConversationId) -> None:
        """Drop the value of a conversation that was last written.

        Load the conversation again before its next save.
        """
        self._lane.run(lambda: self._worker.release(conversation_id))

    def move(
        self,
        move: Callable[[], None],
        on_result: Callable[[None], None],
        on_error: Callable[[Problem], None],
    ) -> None:
        """Close the store, call `move`, and open the store again, also if `move` fails.

        An error is reported even if the store is lost, because the caller waits for the end.
        """
        self._lane.run(lambda: self._worker.move(move), on_result, on_error)

    def close(self) -> None:
        """Finish the queued calls, close the store and join the thread. Idempotent."""
        self._look_for_room.stop()
        self._lane.run(self._worker.close)
        self._lane.stop()

    def _queue(
        self,
        call: Callable[[], T],
        on_result: Callable[[T], None] | None,
        on_error: Callable[[Problem], None] | None,
    ) -> None:
        self._lane.run(call, on_result, self._unless_lost(on_error))
        self.used.emit()

    def _unless_lost(self, on_error: Callable[[Problem], None] | None) -> Callable[[Problem], None]:
        report = on_error or self.failed.emit

        def unless_lost(problem: Problem) -> None:
            # `unavailable` has already reported that the store cannot be opened
            if not self.is_lost:
                report(problem)

        return unless_lost

    def _on_opened(self, opened: OpenedStore) -> None:
        self.is_lost = False
        self.opened.emit()
        if opened.is_read_only:
            self._look_for_room.start()
            self.became_read_only.emit(
                Problem(
                    title=words.STORE_READ_ONLY,
                    cause=words.STORE_READ_ONLY_CAUSE,
                    advice=words.STORE_FULL_ADVICE,
                )
            )
        else:
            self._tidy(opened)

    def _on_reopened(self, opened: OpenedStore) -> None:
        self._look_for_room.stop()
        self.became_writable.emit()
        self._tidy(opened)

    def _tidy(self, opened: OpenedStore) -> None:
        """Begin the work that follows the opening, and report what the opening did."""
        self._lane.run_aside(lambda: None if self._worker.store.search.index_slice() else True)
        if opened.purged:
            self.purged.emit(opened.purged)
        if not opened.is_checked:
            self.unchecked.emit()
        if opened.problem is not None:
            self.rescued.emit(opened.problem)

    def _on_unavailable(self, problem: Problem) -> None:
        self.is_lost = True
        self.unavailable.emit(problem)


class _StoreWorker:
    """The store, and the last written value of each conversation. Use on the store thread only."""

    def __init__(self, open_store: OpenStore, on_reopened: Callable[[OpenedStore], None]) -> None:
        self._open_store = open_store
        self._on_reopened = on_reopened
        self._store: ConversationStore | None = None
        self._is_read_only = False
        self._saved: dict[ConversationId, Conversation] = {}

    @property
    def store(self) -> ConversationStore:
        if self._store is None:
            raise StoreError(words.STORE_CLOSED)
        if self._is_read_only and self._store.has_room:
            self._store.close()
            opened = self.open()
            if not opened.is_read_only:
                self._on_reopened(opened)
        return self._store

    def open(self) -> OpenedStore:
        opened = self._open_store()
        self._store = opened.store
        self._is_read_only = opened.is_read_only
        return opened

    def save(self, conversation: Conversation) -> None:
        saved = self._saved.get(conversation.conversation_id)
        if saved is None:
            self.store.create(conversation)
        else:
            self.store.save(conversation, since=saved)
        self._saved[conversation.conversation_id] = conversation

    def load(self, conversation_id: ConversationId) -> Conversation:
        conversation = self.store.load(conversation_id)
        self._saved[conversation_id] = conversation
        return conversation

    def release(self, conversation_id: ConversationId) -> None:
        self._saved.pop(conversation_id, None)

    def move(self, move: Callable[[], None]) -> None:
        self.close()
        try:
            move()
        finally:
            self.open()

    def close(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None
