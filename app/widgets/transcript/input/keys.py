"""Keyboard commands of the focused transcript. Used on the main thread only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent, QKeySequence

from app.widgets.transcript.input.target_focus import TargetFocus
from app.widgets.transcript.layout.placement import ScrollAnchor
from app.widgets.transcript.layout.text_selection import TextSelection

# Keys that click the focused link or button.
PRESSING = frozenset({Qt.Key.Key_Return, Qt.Key.Key_Enter})
# Keys that stop the automatic scrolling to the end of a growing answer.
UPWARDS = frozenset({Qt.Key.Key_Home, Qt.Key.Key_Up, Qt.Key.Key_PageUp})


@dataclass(frozen=True, slots=True)
class Keys:
    """The keyboard commands of the transcript.

    The scroll area handles the arrow keys, Page Up and Page Down.
    """

    placement: ScrollAnchor
    selection: TextSelection
    jump_to_start: Callable[[], None]
    jump_to_latest: Callable[[], None]
    focus: TargetFocus

    def press(self, event: QKeyEvent) -> bool:
        """Carry out the command of a key. Return False if the key has no command."""
        key, placement = event.key(), self.placement
        back = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        if key in UPWARDS or (key == Qt.Key.Key_Space and back):
            placement.hold()
        if event.matches(QKeySequence.StandardKey.Copy):
            self.selection.copy()
        elif event.matches(QKeySequence.StandardKey.SelectAll):
            self.selection.select_all()
        elif key == Qt.Key.Key_Home:
            self.jump_to_start()
        elif key == Qt.Key.Key_End:
            self.jump_to_latest()
        elif key == Qt.Key.Key_Space:
            placement.scroll_page(-1 if back else 1)
        elif key in PRESSING:
            return self.focus.press()
        elif key == Qt.Key.Key_Escape:
            return self.focus.leave()
        else:
            return False
        return True
