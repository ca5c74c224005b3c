"""The time of reading that kept state has saved: today, and in all. Main thread.

Each answer is counted once, when its request ends (Turns.time_saved). The sums are not computed
from the stored answers, so deleting a chat does not change them. The days are those of the
computer's calendar. If its clock is set back and forth, each day keeps its own sum.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from PySide6.QtCore import QObject

from app.bridge.tasks import TaskLane
from app.controllers.kept_record import KeptRecord
from app.controllers.origin import Origin
from app.controllers.turns import Turns
from app.store.reading_records import MAX_DAYS, DaySaved, SavedRecord, load_saved


class TimeSaved(QObject):
    """The sums. They outlast the app."""

    def __init__(self, turns: Turns, origin: Origin, path: Path, lane: TaskLane) -> None:
        super().__init__()
        self._origin = origin
        self._value = load_saved(path)
        self._record = KeptRecord(path, lane, self)
        turns.time_saved.connect(self._add)

    @property
    def today_s(self) -> float:
        return self._of_day(self._today()) / 1e3

    @property
    def total_s(self) -> float:
        return self._value.total_ms / 1e3

    def flush(self) -> None:
        """Queue a write of unsaved sums now."""
        self._record.flush()

    def _add(self, saved_ms: float) -> None:
        day = self._today()
        others = [one for one in self._value.days if one.day != day]
        newest = DaySaved(day=day, saved_ms=self._of_day(day) + saved_ms)
        days = (*others, newest)[-MAX_DAYS:]
        self._value = SavedRecord(total_ms=self._value.total_ms + saved_ms, days=days)
        self._record.keep(self._value)

    def _of_day(self, day: str) -> float:
        return next((one.saved_ms for one in self._value.days if one.day == day), 0.0)

    def _today(self) -> str:
        return datetime.fromtimestamp(self._origin.now()).astimezone().date().isoformat()
