"""What the transcript does by itself: exact heights out of sight, colours of code, seconds of thought.

Main thread, in slices of a few milliseconds with the event loop in between.
"""

from __future__ import annotations

from time import perf_counter

from PySide6.QtCore import QObject, QTimer, Signal

from app.widgets.transcript.layout.stack import MessageStack
from app.widgets.transcript.messages.answer import AnswerContent
from app.widgets.transcript.rows.row import IdleResult, TranscriptRow

PAUSE_MS = 10
SLICE_S = 0.004
TICK_MS = 1000  # the seconds of "Thinking…"


class IdleWork(QObject):
    """Runs while there is something left to do; start() after every change."""

    measured = Signal(int, int)  # messages from one to another have other heights now
    colored = Signal()  # visible rows want to be painted again

    def __init__(self, stack: MessageStack, parent: QObject) -> None:
        super().__init__(parent)
        self.unfinished: dict[TranscriptRow, None] = {}  # visible rows that want time, oldest first
        self._stack = stack
        self._near = 0
        self._timer = QTimer(self)
        self._timer.setInterval(PAUSE_MS)
        self._timer.timeout.connect(self._work)

    @property
    def is_active(self) -> bool:
        return self._timer.isActive()

    def start(self, near: int) -> None:
        """Work from the message near outwards."""
        self._near = near
        if not self._timer.isActive():
            self._timer.start()

    def _work(self) -> None:
        until = perf_counter() + SLICE_S
        colored = self._color_rows(until)
        moved: list[int] = []
        while not moved or perf_counter() < until:
            index = self._stack.advance(self._near)
            if index is None:
                break
            moved.append(index)
        if moved:
            self.measured.emit(min(moved), max(moved))
        if colored:
            self.colored.emit()
        if not moved and not colored and not self.unfinished:
            self._timer.stop()

    def _color_rows(self, until: float) -> bool:
        changed = False
        for row in list(self.unfinished):
            if perf_counter() > until:
                break
            progress = row.advance()
            changed |= progress is IdleResult.CHANGED
            if progress is IdleResult.DONE:
                del self.unfinished[row]
        return changed


class ThinkingTick(QObject):
    """Counts the seconds while the last answer thinks."""

    ticked = Signal()

    def __init__(self, stack: MessageStack, parent: QObject) -> None:
        super().__init__(parent)
        self._stack = stack
        self._timer = QTimer(self)
        self._timer.setInterval(TICK_MS)
        self._timer.timeout.connect(self._tick)

    def update(self) -> None:
        """Run only while there is something to count."""
        thinking = self._thinking()
        if thinking is None:
            self._timer.stop()
        elif not self._timer.isActive():
            self._timer.start()

    def _thinking(self) -> AnswerContent | None:
        last = self._stack.layouts[-1].content if len(self._stack) else None
        return last if isinstance(last, AnswerContent) and last.is_thinking else None

    def _tick(self) -> None:
        thinking = self._thinking()
        if thinking is not None:
            thinking.tick()
            self.ticked.emit()
