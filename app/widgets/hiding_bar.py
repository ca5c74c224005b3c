"""A vertical scroll bar that hides while nothing scrolls, as macOS has it.

macOS has a setting for scroll bars: always shown, or shown only when scrolling. This class follows
it. Other systems show scroll bars always.
"""

from __future__ import annotations

import sys
from functools import cache

from PySide6.QtCore import QEvent, QTimer
from PySide6.QtGui import QEnterEvent, QPaintEvent
from PySide6.QtWidgets import QScrollBar, QStyle, QStyleFactory, QWidget
from typing_extensions import override

# Time after the last movement at which the bar hides. AppKit's value is not documented.
REST_MS = 1000


class HidingBar(QScrollBar):
    """A vertical scroll bar that hides its handle while nothing scrolls."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._rest = QTimer(self, singleShot=True, interval=REST_MS)
        self._rest.timeout.connect(self.update)
        self.valueChanged.connect(self._show_handle)
        self.rangeChanged.connect(self._show_handle)

    @property
    def shows_handle(self) -> bool:
        return self._rest.isActive() or self.underMouse() or self.isSliderDown() or not hides_bars()

    def _show_handle(self) -> None:
        if not self._rest.isActive():
            self.update()
        self._rest.start()

    @override
    def enterEvent(self, event: QEnterEvent) -> None:
        super().enterEvent(event)
        self._show_handle()

    @override
    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._show_handle()

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        if self.shows_handle:
            super().paintEvent(event)


def hides_bars() -> bool:
    """Return True if the user's setting is that scroll bars show only when scrolling."""
    style = _mac_style()
    return style is not None and bool(style.styleHint(QStyle.StyleHint.SH_ScrollBar_Transient))


@cache
def _mac_style() -> QStyle | None:
    # The app's style sheet hides this hint of the style below it.
    return QStyleFactory.create("macOS") if sys.platform == "darwin" else None
