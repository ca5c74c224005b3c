"""The settings window: tabs at the top, one page below. A change applies at once."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TypeVar

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import (
    QButtonGroup,
    QFrame,
    QHBoxLayout,
    QStackedWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.controllers.core import Core
from app.theme.icons import GRID, Icon
from app.theme.palette import Theme
from app.theme.tokens import Size, Space
from app.theme.window_style import TAB_ZOOM
from app.widgets.button import focus_checked
from app.widgets.commands import Actions, CommandId
from app.widgets.focus_order import set_tab_order
from app.widgets.own_windows import OwnWindow
from app.widgets.scroller import VerticalScroller
from app.widgets.settings_advanced import AdvancedPage
from app.widgets.settings_appearance import AppearancePage
from app.widgets.settings_chat import ChatPage
from app.widgets.settings_general import GeneralPage
from app.widgets.settings_models import ModelsPage
from app.widgets.settings_new_chats import NewChatsPage
from app.widgets.settings_page import SettingsPage
from app.widgets.settings_server import ServerPage
from app.widgets.settings_shortcuts import ShortcutsPage
from app.widgets.settings_storage import StoragePage
from app.widgets.window_size import keep_on_screen, most_of_screen, within_screen
from app.words import server_page, settings as words, shortcuts

Page = TypeVar("Page", bound=SettingsPage | AdvancedPage | ShortcutsPage)


class SettingsWindow(OwnWindow):
    """The settings window. It is not modal. It is created once, and closing only hides it."""

    def __init__(self, theme: Theme, core: Core, actions: Actions, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Window)
        self.setObjectName("settings")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setWindowTitle(words.TITLE)
        self._theme = theme
        self._core = core
        self._actions = actions
        self.tabs: dict[Icon, QToolButton] = {}
        self._group = QButtonGroup(self)
        self._row = QHBoxLayout()
        self._pages = QStackedWidget(self)
        # Created before the tabs: else a new row of a folder would come after the fields in the
        # order of Tab, because Qt does not move fields that pass their focus on.
        self.models = ModelsPage(
            core.preferences,
            core.models,
            core.hub,
            actions[CommandId.ADD_FOLDER],
            actions[CommandId.GET_MODELS],
            self._scroller(),
        )
        self._build()
        theme.changed.connect(self._tint)
        theme.zoomed.connect(self._fit)
        self._fit()

    def open(self) -> None:
        """Show the window and bring it to the front."""
        self.show()
        self.raise_()
        self.activateWindow()
        self.setFocus()

    def flush(self) -> None:
        """Save text that was typed into the page of new chats and is not saved yet."""
        page = self.findChild(NewChatsPage)
        if page is not None:
            page.flush()

    # The other pages are created when they are first shown: all take as long as the main window.

    @cached_property
    def general(self) -> GeneralPage:
        core = self._core
        page = GeneralPage(self._theme, core.preferences, core.login, self._scroller())
        return self._placed(page)

    @cached_property
    def appearance(self) -> AppearancePage:
        return self._placed(AppearancePage(self._theme, self._core.preferences, self._scroller()))

    @cached_property
    def chat(self) -> ChatPage:
        core = self._core
        page = ChatPage(self._theme, core.preferences, core.presets, core.models, self._scroller())
        return self._placed(page)

    @cached_property
    def new_chats(self) -> NewChatsPage:
        core = self._core
        return self._placed(NewChatsPage(self._theme, core.presets, core.models, self._scroller()))

    @cached_property
    def shortcuts(self) -> ShortcutsPage:
        return self._placed(ShortcutsPage(self._theme, self._core.preferences, self._scroller()))

    @cached_property
    def storage(self) -> StoragePage:
        core = self._core
        page = StoragePage(self._theme, core.preferences, core.storage, self._scroller())
        page.show_chats.clicked.connect(self._actions[CommandId.MEMORY_MAP].trigger)
        return self._placed(page)

    @cached_property
    def server(self) -> ServerPage:
        core = self._core
        page = ServerPage(self._theme, core.server, core.models, core.preferences, self._scroller())
        return self._placed(page)

    @cached_property
    def advanced(self) -> AdvancedPage:
        return self._placed(AdvancedPage(self._theme, self._core, self._scroller()))

    def _build(self) -> None:
        self._add(Icon.GENERAL, words.GENERAL, lambda: self.general)
        self._add(Icon.APPEARANCE, words.APPEARANCE, lambda: self.appearance)
        self._add(Icon.CHAT, words.CHAT, lambda: self.chat)
        self._add(Icon.NEW_CHAT, words.NEW_CHATS_TAB, lambda: self.new_chats)
        self._add(Icon.MODEL, words.MODELS, lambda: self.models)
        self._add(Icon.KEYBOARD, shortcuts.TAB, lambda: self.shortcuts)
        self._add(Icon.STORAGE, words.STORAGE, lambda: self.storage)
        self._add(Icon.SERVER, server_page.TAB, lambda: self.server)
        self._add(Icon.ADVANCED, words.ADVANCED, lambda: self.advanced)
        self._row.setContentsMargins(Space.L, Space.S, Space.L, Space.S)
        self._row.setSpacing(Space.XS)
        self._row.insertStretch(0)
        self._row.addStretch()
        line = QFrame(self)
        line.setObjectName("settingsLine")
        line.setFixedHeight(1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(self._row)
        layout.addWidget(line)
        layout.addWidget(self._pages, 1)
        self._placed(self.models)
        focus_checked(self._group)
        self._group.buttons()[0].setChecked(True)
        self._show(self.general)

    def _scroller(self) -> QWidget:
        """Add a view to the pages. Return the parent of the page in it."""
        scroller = VerticalScroller(self._pages)
        self._pages.addWidget(scroller)
        return scroller.viewport()

    def _placed(self, page: Page) -> Page:
        """Put a new page into its view, and its controls after the tabs in the order of Tab."""
        _scroller_of(page).setWidget(page)
        set_tab_order(*self.tabs.values(), *page.controls)
        return page

    def _add(self, icon: Icon, name: str, find_page: Callable[[], QWidget]) -> None:
        """Add a tab. `find_page` returns its page, which it may create."""
        tab = QToolButton(self)
        tab.setText(name)
        tab.setCheckable(True)
        tab.setProperty("kind", "tab")
        tab.setToolTip(name)
        tab.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # until it is checked
        tab.clicked.connect(lambda: self._show(find_page()))
        self._group.addButton(tab)
        self._row.addWidget(tab)
        self.tabs[icon] = tab

    def _show(self, page: QWidget) -> None:
        if self._pages.isAncestorOf(self.focusWidget()):
            # Else Qt focuses the first control of the new page, which may be Remove.
            self.setFocus()
        self._pages.setCurrentWidget(_scroller_of(page))

    def _fit(self) -> None:
        """Fit the window to the size of text, inside the screen."""
        self._tint()
        zoom = max(1.0, self._theme.zoom)
        wanted = QSize(Size.SETTINGS_WINDOW, Size.SETTINGS_HEIGHT) * zoom
        self._show_names(shown=True)
        if self._row.minimumSize().width() > most_of_screen(self).width():
            self._show_names(shown=False)
        self.setFixedSize(within_screen(self, wanted))  # the row of tabs may widen it
        keep_on_screen(self)

    def _show_names(self, *, shown: bool) -> None:
        """Show the names of the tabs below their icons. Without them, tooltips have the names."""
        style = Qt.ToolButtonStyle
        for tab in self.tabs.values():
            tab.ensurePolished()
            tab.setToolButtonStyle(
                style.ToolButtonTextUnderIcon if shown else style.ToolButtonIconOnly
            )
        # The sizes are needed now, and a layout forgets old ones only at the next event.
        self._row.invalidate()
        layout = self.layout()
        assert layout is not None
        layout.invalidate()

    def _tint(self) -> None:
        size, color = self._theme.scaled(GRID, TAB_ZOOM), self._theme.colors.secondary
        for icon, tab in self.tabs.items():
            tab.setIconSize(QSize(size, size))
            tab.setIcon(self._theme.icons.icon(icon, color, size=size))


def _scroller_of(page: QWidget) -> VerticalScroller:
    viewport = page.parentWidget()
    assert viewport is not None
    scroller = viewport.parentWidget()
    assert isinstance(scroller, VerticalScroller)
    return scroller
