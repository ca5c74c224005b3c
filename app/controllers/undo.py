"""What the person can take back, the newest first. Main thread."""

from __future__ import annotations

from collections.abc import Callable


class UndoList:
    """Actions that are undone by calling what they left here. Each is undone once."""

    def __init__(self) -> None:
        self._entries: list[Callable[[], object]] = []

    def add(self, undo: Callable[[], object]) -> Callable[[], object]:
        """Take note of how to undo what was just done.

        Returns:
            What undoes this very action, whatever was done since.
        """
        self._entries.append(undo)
        return lambda: self._undo(undo)

    def undo_newest(self) -> None:
        if self._entries:
            self._entries.pop()()

    def _undo(self, undo: Callable[[], object]) -> None:
        if undo in self._entries:
            self._entries.remove(undo)
            undo()
