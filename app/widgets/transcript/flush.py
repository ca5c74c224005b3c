"""A buffer for streamed text, so that the view updates at most once per frame. Main thread only.

Streamed text arrives in several pieces (deltas) per frame. The first delta starts a single-shot
timer. When the timer fires, the view takes all deltas and updates once. The interval of the timer
is longer while the window is inactive and after a slow update, so that updates take at most half
of the time.
"""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QObject, Qt, QTimer, Signal
from PySide6.QtWidgets import QWidget

from app.theme.tokens import Millis
from engine.types import Channel

SLOW_S = 0.008  # seconds; an update that takes longer doubles the next interval of the timer


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of streamed text."""

    key: str
    channel: Channel
    text: str


class DeltaBuffer(QObject):
    """Streamed text (deltas) that the view has not shown yet."""

    due = Signal()  # emitted when the view must take the deltas

    def __init__(self, view: QWidget) -> None:
        super().__init__(view)
        self._view = view
        self._pending: list[Delta] = []
        self._spent_s = 0.0  # duration of the last update
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self.due)

    def add(self, delta: Delta) -> None:
        self._pending.append(delta)
        if not self._timer.isActive():
            self._timer.start(self._interval())

    def take_deltas(self) -> list[Delta]:
        """Return the deltas in the order of their arrival, and stop the timer."""
        self._timer.stop()
        pending, self._pending = self._pending, []
        return pending

    @property
    def is_empty(self) -> bool:
        return not self._pending

    def drop(self) -> None:
        """Discard the deltas and stop the timer. Call when another conversation is shown."""
        self._timer.stop()
        self._pending = []

    def spent(self, seconds: float) -> None:
        """Record how long the last update took. A slow update makes the next interval longer."""
        self._spent_s = seconds

    def _interval(self) -> int:
        if not self._view.window().isActiveWindow():
            return Millis.FLUSH_INACTIVE
        slow = Millis.FLUSH * 2 if self._spent_s > SLOW_S else Millis.FLUSH
        return max(slow, round(self._spent_s * 1000))
