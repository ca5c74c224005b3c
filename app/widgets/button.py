"""A push button that only keys focus, and the focus of a group of buttons. Main thread."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QAbstractButton, QButtonGroup, QPushButton, QWidget
from typing_extensions import override

_ARROWS = (Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_Left, Qt.Key.Key_Right)


class Button(QPushButton):
    """A push button. Tab focuses it, but a click leaves the focus where it is, as on a Mac."""

    def __init__(self, text: str, parent: QWidget) -> None:
        super().__init__(text, parent)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)

    @override
    def keyPressEvent(self, arg__1: QKeyEvent) -> None:
        """Leave the arrow keys to the parent, unless they choose another button of a group."""
        if arg__1.key() in _ARROWS and not self.isCheckable():
            arg__1.ignore()
        else:
            super().keyPressEvent(arg__1)


def focus_checked(group: QButtonGroup) -> None:
    """Let Tab reach only the checked button of an exclusive group. Arrow keys reach the others.

    Qt does this when a button of the group gets the focus, but a click gives none of them the focus.
    If a button of the group has the focus, it moves to the button that gets checked.
    """
    group.buttonToggled.connect(_on_toggled)


def _on_toggled(button: QAbstractButton, checked: bool) -> None:  # noqa: FBT001 (Qt's signature)
    button.setFocusPolicy(Qt.FocusPolicy.TabFocus if checked else Qt.FocusPolicy.NoFocus)
    if checked and any(other.hasFocus() for other in button.group().buttons()):
        button.setFocus()
