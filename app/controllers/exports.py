"""Export of text and conversations to a file that the user chose. Main thread.

A worker thread writes the file. For an export of all conversations, the store thread loads some at a
time, when the worker asks for them, so memory stays small and the store serves other calls between.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from queue import SimpleQueue

from PySide6.QtCore import QIODevice, QObject, QSaveFile, Qt, Signal

from app.bridge.store_lane import StoreLane
from app.bridge.tasks import TaskLane
from app.conversation.filed import FiledConversation
from app.conversation.text import file_label
from app.exchange.exporting import export
from app.stopping import StoppedError
from app.store.conversations import ConversationStore
from app.words import problems as words
from engine.errors import DiskError, EngineError
from engine.problem import Problem
from engine.types import ConversationId

_BATCH = 20  # conversations that the store loads in one call


_Part = tuple[FiledConversation, ...] | Problem | None


class Exports(QObject):
    """The writer of exported files. If writing fails, an existing file is left unchanged."""

    saved = Signal(str)  # argument: name of the saved file
    exported = Signal(int, str)  # arguments: number of conversations, name of the saved file
    failed = Signal(object)  # argument: a Problem

    def __init__(self, lane: TaskLane, store: StoreLane) -> None:
        super().__init__()
        self._lane = lane
        self._store = store
        self._long = TaskLane("export", self)
        self._feeds: list[_Feed] = []  # of the exports of several conversations that have not ended

    def save(self, path: Path, text: str) -> None:
        self._lane.run(
            partial(write_text, path, text),
            lambda _none: self.saved.emit(file_label(path)),
            self.failed.emit,
        )

    def export_one(self, path: Path, conversation: FiledConversation) -> None:
        """Write a conversation to a file. The ending of its name decides the kind."""
        self._lane.run(
            partial(export, path, (conversation,)),
            lambda number: self.exported.emit(number, file_label(path)),
            self.failed.emit,
        )

    def export_several(self, path: Path, conversation_ids: Sequence[ConversationId]) -> None:
        """Write conversations to a file, after the exports of several that were asked for before."""
        feed = _Feed(self)
        self._feeds.append(feed)
        left = [
            tuple(conversation_ids[at : at + _BATCH])
            for at in range(0, len(conversation_ids), _BATCH)
        ]
        feed.wanted.connect(
            lambda: self._load(feed, left.pop(0) if left else ()),
            Qt.ConnectionType.QueuedConnection,
        )
        self._long.run(
            lambda: export(path, feed.conversations()),
            lambda number: self._on_exported(feed, path, number),
            lambda problem: self._on_failed(feed, problem),
        )

    def close(self) -> None:
        """Stop the exports of several conversations, and join the thread."""
        for feed in self._feeds:
            feed.put(None)
        self._long.stop()

    def _load(self, feed: _Feed, batch: tuple[ConversationId, ...]) -> None:
        self._store.run_aside(_Loading(batch).step, feed.put, feed.put)

    def _on_exported(self, feed: _Feed, path: Path, number: int) -> None:
        self._feeds.remove(feed)
        self.exported.emit(number, file_label(path))

    def _on_failed(self, feed: _Feed, problem: Problem) -> None:
        self._feeds.remove(feed)
        self.failed.emit(problem)


class _Feed(QObject):
    """Conversations on their way from the store to the thread that exports them."""

    wanted = Signal()  # the exporting thread waits for the next batch

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._parts: SimpleQueue[_Part] = SimpleQueue()

    def put(self, part: _Part) -> None:
        """Pass some conversations on. Without any the export ends; a problem or None stops it."""
        self._parts.put(part)

    def conversations(self) -> Iterator[FiledConversation]:
        """Yield all conversations. Called by the exporting thread.

        Raises:
            EngineError: a conversation cannot be loaded, or the export was stopped.
        """
        while True:
            self.wanted.emit()
            part = self._parts.get()
            if part is None:
                raise StoppedError
            if isinstance(part, Problem):
                raise EngineError.of(part)
            if not part:
                return
            yield from part


class _Loading:
    """Conversations that are loaded for an export. Only the store thread uses it."""

    def __init__(self, batch: Sequence[ConversationId]) -> None:
        self._left = deque(batch)
        self._loaded: list[FiledConversation] = []

    def step(self, store: ConversationStore) -> tuple[FiledConversation, ...] | None:
        """Load a conversation. Return all of them after the last one."""
        if self._left:
            self._loaded.append(store.load_filed(self._left.popleft()))
        return None if self._left else tuple(self._loaded)


def write_text(path: Path, text: str) -> None:
    """Write a text as UTF-8.

    Raises:
        DiskError: the file cannot be written; an existing file is unchanged.
    """
    file = QSaveFile(str(path))
    content = text.encode()
    opened = file.open(QIODevice.OpenModeFlag.WriteOnly)
    if not (opened and file.write(content) == len(content) and file.commit()):
        raise DiskError(words.cannot_write(path, file.errorString()))
