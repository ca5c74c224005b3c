"""The other windows of the app: where they open, and the commands that work in all of them.

On a Mac the menu bar belongs to the app, so its commands work in every window. Elsewhere it belongs
to the main window, and its commands work there only.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QChildEvent, QEvent, QObject, QPoint, QRect, Qt
from PySide6.QtGui import QAction, QKeyEvent
from PySide6.QtWidgets import QWidget
from typing_extensions import override

_KINDS = frozenset({Qt.WindowType.Window, Qt.WindowType.Dialog, Qt.WindowType.Sheet})


class OwnWindow(QWidget):
    """A window beside the main window, which Esc closes."""

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.close()
        else:
            super().keyPressEvent(event)


class OwnWindows(QObject):
    """Adds commands to each window and sheet of the main window, and opens windows over it."""

    def __init__(self, main: QWidget, commands: Sequence[QAction]) -> None:
        super().__init__(main)
        self._main = main
        self._commands = commands
        main.installEventFilter(self)

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self._main:
            if isinstance(event, QChildEvent) and event.type() is QEvent.Type.ChildPolished:
                self._adopt(event.child())
        elif isinstance(watched, QWidget) and is_opening(event):
            self._centre(watched)
        return False

    def _adopt(self, window: QObject) -> None:
        if not isinstance(window, QWidget) or window.actions():
            return
        if window.windowType() in _KINDS:
            window.addActions(self._commands)
            if window.windowType() is Qt.WindowType.Window:  # Qt itself centres dialogs
                window.installEventFilter(self)

    def _centre(self, window: QWidget) -> None:
        """Move a window over the middle of the main window, inside the main window's screen."""
        main, area = self._main, self._main.screen().availableGeometry()
        # The frame of a window is unknown before the system shows it, but is like the main
        # window's.
        frame = QRect(QPoint(), window.size() + main.frameSize() - main.size())
        frame.moveCenter(main.frameGeometry().center())
        x = max(area.left(), min(frame.x(), area.right() + 1 - frame.width()))
        y = max(area.top(), min(frame.y(), area.bottom() + 1 - frame.height()))
        window.move(x, y)


def is_opening(event: QEvent) -> bool:
    """Return True if the app shows a window, and not the system, for example from the Dock."""
    return event.type() is QEvent.Type.Show and not event.spontaneous()
