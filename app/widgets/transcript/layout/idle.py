"""Work in idle time: exact heights, colours of code, the "Thinking" clock. Main thread only.

Work is done in slices of SLICE_S seconds, so that input and painting wait for at most one slice.
"""

from __future__ import annotations

from time import perf_counter

from PySide6.QtCore import QObject, QTimer, Signal

from app.widgets.transcript.layout.stack import MessageStack
from app.widgets.transcript.messages.answer import AnswerContent
from app.widgets.transcript.rows.row import IdleResult, TranscriptRow

PAUSE_MS = 10  # milliseconds between two slices of work
SLICE_S = 0.004
TICK_MS = 1000  # milliseconds; the "Thinking…" pill shows whole seconds


class IdleWork(QObject):
    """Measures messages outside the view and colours visible code, until no work is left.

    Call start() after every change to the transcript.
    """

    # Arguments: first and last index of the messages that may have a new height.
    measured = Signal(int, int)
    colored = Signal()  # emitted when visible rows must be repainted

    def __init__(self, stack: MessageStack, parent: QObject) -> None:
        super().__init__(parent)
        # Painted rows that need more work, for instance colours of code. The oldest row is first.
        self.unfinished: dict[TranscriptRow, None] = {}
        self._stack = stack
        self._near = 0  # index of the message at which work begins
        self._timer = QTimer(self)
        self._timer.setInterval(PAUSE_MS)
        self._timer.timeout.connect(self._work)

    @property
    def is_active(self) -> bool:
        return self._timer.isActive()

    def start(self, near: int) -> None:
        """Start or continue work, first on the message with index `near`.

        Work then continues on messages at increasing distance from `near`.
        """
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
    """Updates the "Thinking" pill once a second while the last answer is reasoning."""

    ticked = Signal()

    def __init__(self, stack: MessageStack, parent: QObject) -> None:
        super().__init__(parent)
        self._stack = stack
        self._timer = QTimer(self)
        self._timer.setInterval(TICK_MS)
        self._timer.timeout.connect(self._tick)

    def update(self) -> None:
        """Start the timer if the last answer is reasoning, else stop the timer."""
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
