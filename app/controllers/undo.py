"""What the person can take back, the newest first. Main thread."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Signal


class UndoList(QObject):
    """Actions that are undone by calling what they left here. Each is undone once."""

    undone = Signal(object)  # what add() returned

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._entries: list[Callable[[], object]] = []

    def add(self, undo: Callable[[], object]) -> Callable[[], object]:
        """Take note of how to undo what was just done.

        Returns:
            What undoes this very action, whatever was done since.
        """

        def undo_this() -> None:
            if undo_this in self._entries:
                self._entries.remove(undo_this)
                undo()
                self.undone.emit(undo_this)

        self._entries.append(undo_this)
        return undo_this

    def undo_newest(self) -> None:
        if self._entries:
            self._entries[-1]()
