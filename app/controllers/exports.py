"""Export of text and conversations to a file that the user chose. Main thread.

A worker thread writes the file. For an export of several conversations, the store thread loads one
at a time, when the worker needs it. So memory stays small and the store serves other calls between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import QIODevice, QObject, QSaveFile, Signal

from app.bridge.jobs import Job, JobLane
from app.bridge.store_lane import StoreLane
from app.bridge.tasks import TaskLane
from app.conversation.filed import FiledConversation
from app.conversation.text import file_label
from app.exchange.exporting import export
from app.store.conversations import ConversationStore
from app.store.pictures import PictureFiles
from app.words import problems as words
from engine.errors import DiskError
from engine.problem import Problem, ProblemKind
from engine.types import ConversationId

# Seconds without a report of the progress: a short export shows none.
_QUIET_S = 0.5


class Exports(QObject):
    """The writer of exported files. If writing fails, an existing file is left unchanged."""

    saved = Signal(str)  # argument: name of the saved file
    exported = Signal(int, str)  # arguments: number of conversations, name of the saved file
    # argument: share of the conversations of an export of several that are written
    progressed = Signal(float)
    ended = Signal()  # an export of several has ended
    failed = Signal(object)  # argument: a Problem

    def __init__(self, lane: TaskLane, store: StoreLane, pictures: PictureFiles) -> None:
        super().__init__()
        self._lane = lane
        self._store = store
        self._pictures = pictures
        self._jobs = JobLane("export")  # the exports of several conversations

    def save(self, path: Path, text: str) -> None:
        self._lane.run(
            partial(write_text, path, text),
            lambda _none: self.saved.emit(file_label(path)),
            self.failed.emit,
        )

    def export_one(self, path: Path, conversation: FiledConversation) -> None:
        """Write a conversation to a file. The ending of its name decides the kind."""
        self._lane.run(
            partial(export, path, (conversation,), self._pictures),
            lambda number: self.exported.emit(number, file_label(path)),
            self.failed.emit,
        )

    def export_several(self, path: Path, conversation_ids: Sequence[ConversationId]) -> None:
        """Write conversations to a file, after all earlier exports of several conversations."""
        self._jobs.start(
            lambda job: export(path, self._load(conversation_ids, job), self._pictures),
            lambda number: self._end(partial(self.exported.emit, number, file_label(path))),
            lambda problem: self._end(partial(self._on_failed, problem)),
            self.progressed.emit,
            quiet_s=_QUIET_S,
        )

    def cancel(self) -> None:
        """Stop the exports of several conversations. Their files are left as they were."""
        self._jobs.stop_jobs()

    def _end(self, report: Callable[[], object]) -> None:
        self.ended.emit()
        report()

    def _on_failed(self, problem: Problem) -> None:
        if problem.kind is not ProblemKind.STOPPED:
            self.failed.emit(problem)

    def close(self) -> None:
        """Stop the exports of several conversations, and join the thread."""
        self._jobs.stop()

    def _load(
        self, conversation_ids: Sequence[ConversationId], job: Job
    ) -> Iterator[FiledConversation]:
        """Yield conversations of the store. Runs on the thread of the job."""
        for number, one in enumerate(conversation_ids):
            job.report(number / len(conversation_ids))
            yield self._store.call_in_job(
                job, partial(ConversationStore.load_filed, conversation_id=one)
            )


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
