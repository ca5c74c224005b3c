"""Back and Forward: the conversations that were on show, in the order of visits. Main thread."""

from __future__ import annotations

from PySide6.QtCore import QObject

from app.controllers.library import LibraryController

KEPT = 100  # number of visits that are kept


class VisitHistory(QObject):
    """The visited conversations since the start of the app. Deleted and new ones are skipped."""

    def __init__(self, library: LibraryController) -> None:
        super().__init__()
        self._library = library
        self._visits = [library.current]  # oldest first
        self._at = 0  # index of the conversation on show, or of the one that is being loaded
        library.current_changed.connect(self._on_current_changed)

    def can_step(self, step: int) -> bool:
        """Return True if a conversation can be shown again. -1 is back, 1 is forward."""
        return self._find(step) is not None

    def step(self, step: int) -> None:
        """Show the previous (-1) or the next (1) visited conversation, if there is one."""
        found = self._find(step)
        if found is not None:
            self._at = found
            self._library.select(self._visits[found])

    def _find(self, step: int) -> int | None:
        """Return the index of the nearest visit in a direction that can be shown, or None."""
        at, library = self._at + step, self._library
        while 0 <= at < len(self._visits):
            visited = self._visits[at]
            if visited in library.listed and visited != library.current:
                return at
            at += step
        return None

    def _on_current_changed(self) -> None:
        current = self._library.current
        if current == self._visits[self._at]:
            return
        before, after = self._visits[: self._at + 1], self._visits[self._at + 1 :]
        # Neither a new, empty chat nor the chat that is shown after a deletion ends the way
        # forward.
        is_chosen = self._visits[self._at] in self._library.listed
        after = [] if is_chosen and current in self._library.listed else after
        self._visits = [*before[-KEPT:], current, *after]
        self._at = min(len(before), KEPT)
