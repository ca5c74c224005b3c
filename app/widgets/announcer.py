"""Says to screen readers what has changed in the window without the focus having moved."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent
from PySide6.QtWidgets import QWidget


def announce(widget: QWidget, text: str) -> None:
    """Say it in any case. Nothing happens while no screen reader listens."""
    QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(widget, text))


class Announcer(QObject):
    """Speaks for one widget. What was said last is not repeated."""

    said = Signal(str)

    def __init__(self, widget: QWidget) -> None:
        super().__init__(widget)
        self._widget = widget
        self._last = ""

    def say(self, text: str) -> None:
        """Say it, if it is something else; nothing is said of no text, and then anything is new."""
        if text == self._last:
            return
        self._last = text
        if text:
            announce(self._widget, text)
            self.said.emit(text)
