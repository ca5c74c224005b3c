"""Pieces of answers on their way to the screen: gathered, and handed on at most once a frame.

Main thread. One single-shot timer, started by the first piece that waits.
"""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QObject, Qt, QTimer, Signal
from PySide6.QtWidgets import QWidget

from app.theme.tokens import Millis
from engine.types import Channel

SLOW_S = 0.008  # a frame that takes longer doubles the next interval


@dataclass(frozen=True, slots=True)
class Delta:
    """More text of a message."""

    key: str
    channel: Channel
    text: str


class DeltaBuffer(QObject):
    """Keeps deltas until its timer says `due`."""

    due = Signal()

    def __init__(self, view: QWidget) -> None:
        super().__init__(view)
        self._view = view
        self._pending: list[Delta] = []
        self._slow = False
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self.due)

    def add(self, delta: Delta) -> None:
        self._pending.append(delta)
        if not self._timer.isActive():
            self._timer.start(self._interval())

    def take_deltas(self) -> list[Delta]:
        """Return the pieces that wait, in order, and stop the timer until the next piece."""
        self._timer.stop()
        pending, self._pending = self._pending, []
        return pending

    @property
    def is_empty(self) -> bool:
        return not self._pending

    def drop(self) -> None:
        """Forget what waits: another conversation is shown."""
        self._timer.stop()
        self._pending = []

    def spent(self, seconds: float) -> None:
        """Say how long the last frame took."""
        self._slow = seconds > SLOW_S

    def _interval(self) -> int:
        if not self._view.window().isActiveWindow():
            return Millis.FLUSH_INACTIVE
        return Millis.FLUSH * 2 if self._slow else Millis.FLUSH
