"""A button that shows a shortcut, and records another one after a click. Main thread."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QWidget
from typing_extensions import override

from app.widgets.button import Button
from app.widgets.key_choices import native
from app.words import shortcuts as words

_MODIFIERS = (Qt.Key.Key_Shift, Qt.Key.Key_Control, Qt.Key.Key_Meta, Qt.Key.Key_Alt)
_CLEARING = (Qt.Key.Key_Backspace, Qt.Key.Key_Delete)


class KeyButton(Button):
    """A shortcut of a command. While it records, it gets all keys before the menus."""

    chosen = Signal(object)  # argument: the QKeySequence that was typed; empty for no shortcut

    def __init__(self, command: str, parent: QWidget) -> None:
        super().__init__("", parent)
        self._command = command
        self._keys = QKeySequence()
        self._is_recording = False
        self.setAutoDefault(False)
        self.clicked.connect(self.record)

    def show_keys(self, keys: QKeySequence) -> None:
        self._keys = keys
        self._record(on=False)

    def record(self) -> None:
        """Take the next keys as the shortcut."""
        self._record(on=True)

    def _record(self, *, on: bool) -> None:
        self._is_recording = on
        shown = native(self._keys) or words.NONE
        self.setText(words.PRESS if on else shown)
        self.setAccessibleName(words.spoken(command=self._command, keys=self.text()))
        if on:
            self.setFocus()

    @override
    def event(self, e: QEvent) -> bool:
        if self._is_recording and e.type() is QEvent.Type.ShortcutOverride:
            e.accept()
            return True
        if self._is_recording and e.type() is QEvent.Type.KeyPress and isinstance(e, QKeyEvent):
            self._take(e)  # Tab does not reach keyPressEvent
            return True
        return super().event(e)

    def _take(self, event: QKeyEvent) -> None:
        key = event.key()
        if key in _MODIFIERS:
            return
        self._record(on=False)
        is_bare = not event.modifiers()
        if is_bare and key in _CLEARING:
            self.chosen.emit(QKeySequence())
        elif not (is_bare and key == Qt.Key.Key_Escape):
            self.chosen.emit(_sequence(event))

    @override
    def focusOutEvent(self, arg__1: QFocusEvent) -> None:
        super().focusOutEvent(arg__1)
        self._record(on=False)


def _sequence(event: QKeyEvent) -> QKeySequence:
    """Return the keys of an event. Shift is left out if it is part of the character, as in "?"."""
    modifiers = event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
    key = event.keyCombination().key()
    is_sign = 0x20 < key < 0x7F and not chr(key).isalpha() and not chr(key).isdigit()
    if is_sign:
        modifiers &= ~Qt.KeyboardModifier.ShiftModifier
    return QKeySequence(modifiers.value | key.value)
