"""Announcements to screen readers about changes that do not move the keyboard focus."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent
from PySide6.QtWidgets import QWidget


def announce(widget: QWidget, text: str) -> None:
    """Let the screen reader speak a text. Do nothing if no screen reader is active."""
    QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(widget, text))


class Announcer(QObject):
    """A source of announcements for one widget. It skips a text that equals the last one."""

    said = Signal(str)  # argument: the announced text

    def __init__(self, widget: QWidget) -> None:
        super().__init__(widget)
        self._widget = widget
        self._last = ""

    def say(self, text: str) -> None:
        """Announce a text if it differs from the last one.

        An empty text is not announced. The text after it is always announced.
        """
        if text == self._last:
            return
        self._last = text
        if text:
            announce(self._widget, text)
            self.said.emit(text)
