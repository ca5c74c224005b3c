"""A push button that only keys focus, and the focus of a group of buttons. Main thread."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QRectF, Qt
from PySide6.QtGui import QKeyEvent, QPainter, QPaintEvent, QPalette, QPen
from PySide6.QtWidgets import QAbstractButton, QButtonGroup, QMenu, QPushButton, QWidget
from typing_extensions import override

from app.theme.icons import Icon, Icons
from app.theme.tokens import Radius, Space, Type

_ICONS = Icons()
_RETURN = (Qt.Key.Key_Return, Qt.Key.Key_Enter)
_ARROWS = (Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_Left, Qt.Key.Key_Right)


class Button(QPushButton):
    """A push button. Tab focuses it, but a click leaves the focus where it is, as on a Mac.

    Return presses the focused button, also if another one is the default button of a sheet.

    A button with a menu has an arrow that scales with the text. The arrow of the style would not.
    """

    def __init__(self, text: str, parent: QWidget) -> None:
        super().__init__(text, parent)
        self._has_menu = False
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)

    @override
    def setMenu(self, menu: QMenu) -> None:
        super().setMenu(menu)
        self._has_menu = True

    @override
    def keyPressEvent(self, arg__1: QKeyEvent) -> None:
        """Leave the arrow keys to the parent, unless they choose another button of a group."""
        if arg__1.key() in _ARROWS and not self.isCheckable():
            arg__1.ignore()
        elif arg__1.key() in _RETURN and not self.isCheckable():
            # A key that is held since another widget had the focus presses nothing.
            if not arg__1.isAutoRepeat():
                self.click()
        else:
            super().keyPressEvent(arg__1)

    @override
    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self.update()  # Qt does not repaint a button that loses its hover to an open menu or popup

    @override
    def paintEvent(self, arg__1: QPaintEvent) -> None:
        super().paintEvent(arg__1)
        if self.hasFocus() and self._is_filled():
            self._paint_ring()
        if not self._has_menu or self.property("kind") == "chip":
            return
        side = round(Space.L * max(1.0, self.font().pixelSize() / Type.UI.size))
        arrow = QRectF(0, 0, side, side)
        arrow.moveCenter(QRectF(self.rect()).center())
        arrow.moveRight(self.width() - Space.S)
        color = self.palette().color(QPalette.ColorRole.ButtonText).name()
        _ICONS.paint(QPainter(self), Icon.CHEVRON_DOWN_SMALL, color, arrow)

    def _is_filled(self) -> bool:
        """Return True if the button has the accent colour, on which its border can't be told."""
        kind = self.property("kind")
        is_choice = kind == "segment" and self.property("role") != "tab"
        return kind == "primary" or (is_choice and self.isChecked())

    def _paint_ring(self) -> None:
        """Paint the focus ring inside the edge of a filled button."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        color = self.palette().color(QPalette.ColorRole.HighlightedText)
        painter.setPen(QPen(color, Space.HAIR))
        inset = Space.HAIR * 1.5  # leaves a rim of the button visible outside the ring
        radius = Radius.BUTTON - inset
        painter.drawRoundedRect(
            QRectF(self.rect()).adjusted(inset, inset, -inset, -inset), radius, radius
        )


def focus_checked(group: QButtonGroup) -> None:
    """Let Tab reach only the checked button of an exclusive group. Arrow keys reach the others.

    Qt does this when a button of the group gets the focus, but a click gives none of them the
    focus. If a button of the group has the focus, it moves to the button that gets checked.
    """
    group.buttonToggled.connect(_on_toggled)


def _on_toggled(button: QAbstractButton, checked: bool) -> None:  # noqa: FBT001 (Qt's signature)
    button.setFocusPolicy(Qt.FocusPolicy.TabFocus if checked else Qt.FocusPolicy.NoFocus)
    if checked and any(other.hasFocus() for other in button.group().buttons()):
        button.setFocus()
