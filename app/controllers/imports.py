"""Import of conversations from files of this and other apps. Main thread.

A job takes a conversation from the import process, then the store thread writes it, then the next
one is read. Memory stays small. The store writes in short transactions, and the user's actions go
first (StoreLane.call_in_job). When the user cancels an import, the written conversations stay, and
a later import of the same files skips them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app.bridge.jobs import Job, JobLane
from app.bridge.store_lane import StoreLane
from app.controllers.desk import Desk
from app.controllers.folders import FoldersController
from app.controllers.library import LibraryController
from app.conversation.filed import FiledConversation
from app.exchange.found import Unreadable
from app.exchange.isolated import IsolatedImport
from app.store.errors import MessagesTakenError, StoreError
from app.store.merging import Merged, Merging
from app.store.pictures import PictureFiles
from app.words import exchange as words, problems
from engine.problem import Problem, ProblemKind
from engine.types import ConversationId

_REPORT_S = 0.5  # seconds between two reports of the progress


@dataclass(frozen=True, slots=True)
class ImportResult:
    """The outcome of an import that has ended."""

    added: int  # new conversations
    grown: int  # conversations with new messages
    present: int  # conversations that were there already
    unreadable: tuple[Unreadable, ...]
    changed: tuple[ConversationId, ...] = ()  # the new conversations, and those with new messages


@dataclass(slots=True, eq=False)
class _Outcome:
    """The outcome of an import so far. The job changes it, the main thread reads it afterwards."""

    counts: Counter[Merged] = field(default_factory=Counter[Merged])
    unreadable: list[Unreadable] = field(default_factory=list[Unreadable])
    changed: list[ConversationId] = field(default_factory=list[ConversationId])


class Imports(QObject):
    """The import that is running, if any."""

    progressed = Signal(float)  # argument: share of the files that has been read
    ended = Signal(object)  # argument: ImportResult
    failed = Signal(object)  # argument: a Problem

    def __init__(
        self,
        store: StoreLane,
        pictures: PictureFiles,
        desk: Desk,
        library: LibraryController,
        folders: FoldersController,
    ) -> None:
        super().__init__()
        self._store = store
        self._pictures = pictures
        self._desk = desk
        self._library = library
        self._folders = folders
        self._lane = JobLane("import")
        self._job: Job | None = None  # the import that is running

    def start(self, paths: Sequence[Path], *, now: float) -> None:
        """Import files. Do nothing while another import is running. `now` is the Unix time."""
        if self.is_running:
            return
        if self._store.is_lost:
            self.failed.emit(StoreError(problems.STORE_CLOSED).problem)
            return
        files, outcome = IsolatedImport(paths, self._pictures, now=now), _Outcome()
        self._job = self._lane.start(
            partial(self._import, files, outcome),
            lambda _none: self._end(outcome),
            partial(self._on_failed, outcome),
            self.progressed.emit,
            files.stop,
            quiet_s=_REPORT_S,
        )
        self.progressed.emit(0.0)

    @property
    def is_running(self) -> bool:
        return self._job is not None

    def cancel(self) -> None:
        """End the running import. A conversation of which a part is written is not kept."""
        if self._job is not None:
            self._job.stop()

    def close(self) -> None:
        """Cancel the running import, end its process, and join the thread."""
        self._lane.stop()

    def _import(self, files: IsolatedImport, outcome: _Outcome, job: Job) -> None:
        """Write what the files contain. Runs on the thread of the job."""
        for found in files.found():
            if isinstance(found, Unreadable):
                outcome.unreadable.append(found)
            else:
                self._write(found, outcome, job)
            job.report(files.share)

    def _write(self, filed: FiledConversation, outcome: _Outcome, job: Job) -> None:
        conversation = filed.conversation
        try:
            merged = self._store.call_in_job(job, Merging(filed).step)
        except MessagesTakenError:
            outcome.unreadable.append(Unreadable(name=conversation.title, reason=words.TAKEN))
            return
        outcome.counts[merged] += 1
        if merged is not Merged.PRESENT:
            outcome.changed.append(conversation.conversation_id)
        if merged is Merged.GROWN:
            self._lane.deliver(partial(self._desk.load_again, conversation.conversation_id))

    def _on_failed(self, outcome: _Outcome, problem: Problem) -> None:
        self._end(outcome)
        if problem.kind is not ProblemKind.STOPPED:
            self.failed.emit(problem)

    def _end(self, outcome: _Outcome) -> None:
        self._job = None
        self._folders.load_again()
        self._library.load_again()
        self.ended.emit(
            ImportResult(
                added=outcome.counts[Merged.ADDED],
                grown=outcome.counts[Merged.GROWN],
                present=outcome.counts[Merged.PRESENT],
                unreadable=tuple(outcome.unreadable),
                changed=tuple(outcome.changed),
            )
        )
