"""The size and the place of a window on its screen. Main thread."""

from __future__ import annotations

from PySide6.QtCore import QSize
from PySide6.QtWidgets import QWidget

# Shares of the screen's width and height. The window behind stays visible.
_WIDTH, _HEIGHT = 0.9, 0.8


def most_of_screen(window: QWidget) -> QSize:
    """Return the size that a window beside the main window may have without its content's need."""
    room = window.screen().availableSize()
    return QSize(round(room.width() * _WIDTH), round(room.height() * _HEIGHT))


def within_screen(window: QWidget, wanted: QSize) -> QSize:
    """Return the wanted size, but at most a share of the screen. The content scrolls.

    A window whose content needs more, such as a row of tabs, gets it, up to the whole screen.
    """
    room = window.screen().availableSize()
    most = most_of_screen(window)
    return wanted.boundedTo(most).expandedTo(window.minimumSizeHint()).boundedTo(room)


def keep_on_screen(window: QWidget) -> None:
    """Move a visible window that has grown over an edge of its screen back into the screen."""
    if not window.isVisible():
        return
    room, frame = window.screen().availableGeometry(), window.frameGeometry()
    left = max(room.left(), min(frame.left(), room.right() + 1 - frame.width()))
    top = max(room.top(), min(frame.top(), room.bottom() + 1 - frame.height()))
    if (left, top) != (frame.left(), frame.top()):
        window.move(left, top)
