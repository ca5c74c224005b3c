"""Opening the app at login. Main thread; a worker thread reads and writes the file."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from app.bridge.tasks import TaskLane
from app.login_item import LoginItem
from engine.problem import Problem


class OpenAtLogin(QObject):
    """The choice to open the app at login, where this is possible."""

    changed = Signal()
    failed = Signal(object)  # argument: a Problem

    def __init__(self, lane: TaskLane, item: LoginItem | None) -> None:
        super().__init__()
        self._lane = lane
        self._item = item
        self.is_on = False

    @property
    def is_possible(self) -> bool:
        return self._item is not None

    def start(self) -> None:
        """Read the choice, and name the present place of the app in it."""
        if self._item is not None:
            self._lane.run(self._item.renew, self._take, self._on_failed)

    def toggle(self) -> None:
        item = self._item
        if item is None:
            return
        change = item.turn_off if self.is_on else item.turn_on
        self._lane.run(change, lambda _none: self._take(not self.is_on), self._on_failed)

    def _take(self, is_on: bool) -> None:  # noqa: FBT001 (the value)
        self.is_on = is_on
        self.changed.emit()

    def _on_failed(self, problem: Problem) -> None:
        self.changed.emit()  # the check box shows what holds
        self.failed.emit(problem)
