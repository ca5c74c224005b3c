"""Conversations as printed pages and PDF files. Main thread: rows can be laid out nowhere else.

The work is done in slices, so the window stays usable. Nothing is loaded for it: a picture in a
message is a link, as in the transcript.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from PySide6.QtCore import QCoreApplication, QIODevice, QObject, QSaveFile, QTimer, Signal
from PySide6.QtGui import QPagedPaintDevice, QPdfWriter

from app.conversation.text import file_label
from app.conversation.tree import Conversation
from app.widgets.paper.messages import paper_messages
from app.widgets.paper.sheets import Sheets, page_layout
from app.widgets.paper.typesetter import Step, Typesetter
from app.widgets.transcript.messages.body import RowKit
from app.words import problems as words, window
from engine.errors import DiskError, EngineError

_SLICE_S = 0.012  # time for which the pages keep the window waiting
_WAIT_MS = 2  # interval at which a result of another process is looked for
_QUIET_S = 0.7  # time after which progress is reported


@dataclass(slots=True, eq=False)
class _Job:
    """A conversation that is printed or saved as PDF."""

    device: QPagedPaintDevice | None  # None after the last page: a PDF file is complete then
    typesetter: Typesetter
    steps: Iterator[Step]
    finish: Callable[[], None]  # called after the last page; raises a DiskError
    started: float | None = None  # clock time of the first step, in seconds
    percent: int = 0  # last reported progress

    def close(self) -> None:
        """End the pages."""
        self.typesetter.close()
        self.device = None


class Printing(QObject):
    """The queue of conversations to print or to save as PDF. One is laid out at a time."""

    progressed = Signal(int)  # argument: per cent of the messages that are on pages
    saved = Signal(str)  # argument: name of the saved PDF file
    ended = Signal()  # a conversation is printed or saved, has failed, or was cancelled
    failed = Signal(object)  # argument: a Problem

    def __init__(self, make_kit: Callable[[int], RowKit], parent: QObject) -> None:
        super().__init__(parent)
        self._make_kit = make_kit  # from the height of a page
        self._jobs: deque[_Job] = deque()  # the first one is being laid out
        self._timer = QTimer(self, singleShot=True)
        self._timer.timeout.connect(self._work)
        app = QCoreApplication.instance()
        if app is not None:
            app.aboutToQuit.connect(self.cancel_all)

    @property
    def is_idle(self) -> bool:
        return not self._jobs

    def save_pdf(self, path: Path, conversation: Conversation) -> None:
        """Write a conversation as PDF. An existing file stays unchanged until the PDF is done."""
        file = QSaveFile(str(path))
        if not file.open(QIODevice.OpenModeFlag.WriteOnly):
            self.failed.emit(DiskError(words.cannot_write(path, file.errorString())).problem)
            return
        writer = QPdfWriter(file)
        writer.setPageLayout(page_layout())
        writer.setTitle(conversation.title)
        writer.setCreator(window.APP_NAME)

        def finish() -> None:
            if not file.commit():
                raise DiskError(words.cannot_write(path, file.errorString()))
            self.saved.emit(file_label(path))

        self._start(writer, conversation, finish)

    def print_on(self, printer: QPagedPaintDevice, conversation: Conversation) -> None:
        self._start(printer, conversation, lambda: None)

    def cancel(self) -> None:
        """Stop the conversation that is being laid out. No file is saved."""
        if self._jobs:
            self._end(self._jobs[0])

    def cancel_all(self) -> None:
        while self._jobs:
            self.cancel()

    def _start(
        self, device: QPagedPaintDevice, conversation: Conversation, finish: Callable[[], None]
    ) -> None:
        sheets = Sheets(device, conversation.title)
        typesetter = Typesetter(sheets, self._make_kit(sheets.height), conversation.title)
        steps = typesetter.steps(paper_messages(conversation))
        self._jobs.append(_Job(device, typesetter, steps, finish))
        self._timer.start(0)

    def _work(self) -> None:
        """Carry out steps for some milliseconds, or until another process must be waited for."""
        if not self._jobs:
            return
        job, now = self._jobs[0], perf_counter()
        job.started = job.started or now
        step: Step | None = Step.DONE
        try:
            while step is Step.DONE and perf_counter() < now + _SLICE_S:
                step = next(job.steps, None)
            if step is None:
                job.close()
                job.finish()
        except EngineError as error:
            self.failed.emit(error.problem)
            step = None
        except Exception:
            self._end(job)
            raise
        if step is None:
            self._end(job)
            return
        percent = int(100 * job.typesetter.share)
        if now > job.started + _QUIET_S and percent > job.percent:
            job.percent = percent
            self.progressed.emit(percent)
        self._timer.start(_WAIT_MS if step is Step.WAITING else 0)

    def _end(self, job: _Job) -> None:
        self._jobs.remove(job)
        job.close()
        self.ended.emit()
        if self._jobs:
            self._timer.start(0)
