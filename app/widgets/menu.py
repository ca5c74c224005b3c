"""Menus with rounded corners, like popovers. Main thread."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QRectF, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QMenu, QWidget
from typing_extensions import override

from app.theme.icons import Icon, Icons
from app.theme.tokens import Space, Type


class Menu(QMenu):
    """A menu with rounded corners. In the macOS menu bar, the system draws the menu instead."""

    def __init__(self, parent: QWidget, title: str = "") -> None:
        super().__init__(title, parent)
        self._icons = Icons()
        round_corners(self)

    def add_menu(self, title: str) -> Menu:
        """Add an empty submenu and return it."""
        menu = Menu(self, title)
        self.addMenu(menu)
        return menu

    @override
    def paintEvent(self, arg__1: QPaintEvent) -> None:
        """Paint the menu, with vector icons instead of the style's bitmap check marks."""
        super().paintEvent(arg__1)
        painter = QPainter(self)
        color = self.palette().text().color().name()
        side = round(Space.L * max(1.0, self.font().pixelSize() / Type.UI.size))
        for action in self.actions():
            if action.isCheckable() and action.isChecked() and action.isVisible():
                tick = QRectF(0, 0, side, side)
                tick.moveCenter(QRectF(self.actionGeometry(action)).center())
                tick.moveLeft(self.actionGeometry(action).left() + Space.XS)
                self._icons.paint(painter, Icon.CHECK, color, tick)


def round_corners(menu: QMenu) -> None:
    """Make the window of a menu transparent outside the rounded frame.

    The style sheet of the menu paints the frame.
    """
    menu.setAttribute(Qt.WidgetAttribute.WA_TranslucentBackground)
    bare = Qt.WindowType.FramelessWindowHint | Qt.WindowType.NoDropShadowWindowHint
    menu.setWindowFlags(menu.windowFlags() | bare)


def pop_up(menu: QMenu, at: QPoint) -> None:
    """Show a menu at a screen position. Delete the menu when it closes."""
    menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    menu.popup(at)
