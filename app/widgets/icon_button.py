"""A button that shows only an icon in a colour of the theme. It has an accessible name."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QToolButton, QWidget
from typing_extensions import override

from app.theme.icons import GRID, Icon
from app.theme.palette import Theme
from app.theme.tokens import Size
from app.widgets.commands import tooltip

MAX_ZOOM = 1.5  # largest zoom of the buttons


class IconButton(QToolButton):
    """A button with an icon. Call `trigger` or `mirror` to bind an action, or connect `clicked`."""

    def __init__(self, theme: Theme, icon: Icon, name: str, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._icon = icon
        self.setProperty("kind", "icon")
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setAccessibleName(name)
        self.setToolTip(name)
        theme.changed.connect(self._tint)
        theme.zoomed.connect(self._fit)
        self._fit()

    def trigger(self, action: QAction) -> None:
        """Trigger this action on a click, and show its shortcut in the tooltip."""
        show_tip_of(action, self)
        self.clicked.connect(action.trigger)

    def mirror(self, action: QAction) -> None:
        """Trigger this action on a click, and look pressed while the action is checked."""
        show_tip_of(action, self)
        self.setCheckable(True)
        self.setChecked(action.isChecked())
        action.toggled.connect(self.setChecked)
        self.clicked.connect(action.trigger)

    def show_icon(self, icon: Icon, name: str) -> None:
        """Show another icon, with another accessible name."""
        self._icon = icon
        self.setAccessibleName(name)
        self.setToolTip(name)
        self._tint()

    @override
    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self.update()  # Qt does not repaint a button that loses its hover to an open menu or popup

    def _fit(self) -> None:
        """Scale with the size of text, as far as the bars with one row of icons have room."""
        icon = self._theme.scaled(GRID, MAX_ZOOM)
        button = self._theme.scaled(Size.CONTROL, MAX_ZOOM)
        self.setIconSize(QSize(icon, icon))
        self.setFixedSize(button, button)
        self._tint()

    def _tint(self) -> None:
        icons, colors = self._theme.icons, self._theme.colors
        size = self.iconSize().width()
        self.setIcon(icons.icon(self._icon, colors.secondary, disabled=colors.disabled, size=size))


def show_tip_of(action: QAction, widget: QWidget) -> None:
    """Show the name and the keys of a command in the tooltip of a widget."""
    widget.setToolTip(tooltip(action))
    action.changed.connect(lambda: widget.setToolTip(tooltip(action)))
