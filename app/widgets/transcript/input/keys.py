"""What keys do while the transcript has the focus. Main thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent, QKeySequence

from app.widgets.transcript.input.walk import Walk
from app.widgets.transcript.layout.placement import Placement

PRESSING = frozenset({Qt.Key.Key_Return, Qt.Key.Key_Enter})
_SHIFTED = Qt.KeyboardModifier.ShiftModifier | Qt.KeyboardModifier.KeypadModifier
UPWARDS = frozenset({Qt.Key.Key_Home, Qt.Key.Key_Up, Qt.Key.Key_PageUp})


def is_typing(event: QKeyEvent) -> bool:
    """Whether the key writes something."""
    text = event.text()
    return bool(text) and text.isprintable() and not event.modifiers() & ~_SHIFTED


@dataclass(frozen=True, slots=True)
class Keys:
    """The view's own commands by key; the scroll area knows arrows and pages."""

    placement: Placement
    copy: Callable[[], None]
    select_all: Callable[[], None]
    jump_to_start: Callable[[], None]
    jump_to_latest: Callable[[], None]
    walk: Walk

    def press(self, event: QKeyEvent) -> bool:
        """Whether the key has done its work: it is the scroll area's if not."""
        key, placement = event.key(), self.placement
        back = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        if key in UPWARDS or (key == Qt.Key.Key_Space and back):
            placement.hold()
        if event.matches(QKeySequence.StandardKey.Copy):
            self.copy()
        elif event.matches(QKeySequence.StandardKey.SelectAll):
            self.select_all()
        elif key == Qt.Key.Key_Home:
            self.jump_to_start()
        elif key == Qt.Key.Key_End:
            self.jump_to_latest()
        elif key == Qt.Key.Key_Space:
            placement.scroll_page(-1 if back else 1)
        elif key in PRESSING:
            return self.walk.press()
        elif key == Qt.Key.Key_Escape:
            return self.walk.leave()
        else:
            return False
        return True
