"""Questions about a key press. Main thread."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent

_SHIFTED = Qt.KeyboardModifier.ShiftModifier | Qt.KeyboardModifier.KeypadModifier


def is_typing(event: QKeyEvent) -> bool:
    """Return True if a key press would enter a printable character into a text field."""
    text = event.text()
    return bool(text) and text.isprintable() and not event.modifiers() & ~_SHIFTED
