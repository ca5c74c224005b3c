"""What the transcript does when nobody waits for it: exact heights out of sight, colours of code.

Main thread, in slices of a few milliseconds with the event loop in between.
"""

from __future__ import annotations

from time import perf_counter

from PySide6.QtCore import QObject, QTimer, Signal

from app.widgets.transcript_rows import Idle, Row
from app.widgets.transcript_stack import MessageStack

PAUSE_MS = 10
SLICE_S = 0.004


class IdleWork(QObject):
    """Runs while there is something left to do; start() after every change."""

    measured = Signal()  # heights out of sight have changed
    colored = Signal()  # visible rows want to be painted again

    def __init__(self, stack: MessageStack, parent: QObject) -> None:
        super().__init__(parent)
        self.unfinished: dict[Row, None] = {}  # visible rows that want time, oldest first
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
        moved = False
        while perf_counter() < until and self._stack.advance(self._near):
            moved = True
        if moved:
            self.measured.emit()
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
            changed |= progress is Idle.CHANGED
            if progress is Idle.DONE:
                del self.unfinished[row]
        return changed
