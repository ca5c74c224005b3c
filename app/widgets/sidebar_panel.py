"""Shows and hides the sidebar of a window. Main thread.

The setting holds in a window with enough room. In a narrower window the sidebar is hidden until the
user shows it, which does not change the setting. So the sidebar returns when the window gets wider
or its text smaller.
"""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from app.controllers.preferences import Preferences
from app.theme.tokens import Size
from app.widgets.inspector_panel import InspectorPanel
from app.widgets.side_panel import set_panel_visible
from app.widgets.sidebar import Sidebar

# Least width of the chat beside the sidebar, for text of the normal size.
_LEAST_CHAT_WIDTH = 256


class SidebarPanel(QObject):
    """The sidebar of a window, beside the chat and the inspector.

    heir: gets the focus if the sidebar had it when it is hidden
    """

    changed = Signal(bool)  # True if the sidebar is now visible

    def __init__(
        self,
        sidebar: Sidebar,
        inspecting: InspectorPanel,
        preferences: Preferences,
        heir: QWidget,
        window: QWidget,
    ) -> None:
        super().__init__(window)
        self._sidebar = sidebar
        self._inspecting = inspecting
        self._preferences = preferences
        self._heir = heir
        self._window = window
        self._is_asked_for = False  # True if the user has shown the sidebar in a narrow window

    def refresh(self) -> None:
        """Show or hide the sidebar, after a change of the settings or of the window's width."""
        value = self._preferences.value
        if not self._is_narrow():
            self._is_asked_for = False
        wanted = self._is_asked_for if self._is_narrow() else value.sidebar_visible
        visible = wanted and not (value.inspector_visible and self._is_narrow_for_both())
        set_panel_visible(self._sidebar, visible=visible, heir=self._heir)
        self.changed.emit(visible)

    def toggle(self) -> None:
        """Show or hide the sidebar. Without room for both, showing it hides the inspector."""
        shows = not self._sidebar.isVisible()
        if shows and self._is_narrow_for_both():
            self._preferences.change(inspector_visible=False)
        if self._is_narrow():
            self._is_asked_for = shows
            self.refresh()
        else:
            self._preferences.change(sidebar_visible=shows)

    def _is_narrow(self) -> bool:
        zoom = self._preferences.value.text_zoom / 100
        return self._window.width() < Size.SIDEBAR + _LEAST_CHAT_WIDTH * zoom

    def _is_narrow_for_both(self) -> bool:
        room = Size.SIDEBAR + self._inspecting.width + Size.WINDOW_MIN_WIDTH // 2
        return self._window.width() < room
