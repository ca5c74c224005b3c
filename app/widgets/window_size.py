"""The size of a window on its screen. Main thread."""

from __future__ import annotations

from PySide6.QtCore import QSize
from PySide6.QtWidgets import QWidget

_SHARE = 0.8  # of the screen's width and height; the window behind stays visible


def within_screen(window: QWidget, wanted: QSize) -> QSize:
    """Return the wanted size, but at most a share of the screen. The content scrolls.

    A window whose content needs more, such as a row of tabs, gets it, up to the whole screen.
    """
    room = window.screen().availableSize()
    size = wanted.boundedTo(room * _SHARE).expandedTo(window.minimumSizeHint())
    return size.boundedTo(room)
