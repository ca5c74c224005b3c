"""The settings window: tabs at the top, one page below. A change applies at once."""

from __future__ import annotations

from functools import cached_property

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
from app.widgets.settings_server import ServerPage
from app.widgets.settings_shortcuts import ShortcutsPage
from app.widgets.settings_storage import StoragePage
from app.widgets.window_size import keep_on_screen, most_of_screen, within_screen
from app.words import server_page, settings as words, shortcuts


class SettingsWindow(OwnWindow):
    """The settings window. It is not modal. It is created once, and closing only hides it."""

    def __init__(self, theme: Theme, core: Core, actions: Actions, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Window)
        self.setObjectName("settings")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setWindowTitle(words.TITLE)
        self._theme = theme
        self.tabs: dict[Icon, QToolButton] = {}
        self._group = QButtonGroup(self)
        self._row = QHBoxLayout()
        self._pages = QStackedWidget(self)
        self.general = GeneralPage(theme, core.preferences, core.login, self._scroller())
        self.appearance = AppearancePage(theme, core.preferences, self._scroller())
        self.chat = ChatPage(theme, core.preferences, core.presets, core.models, self._scroller())
        self.new_chats = NewChatsPage(theme, core.presets, core.models, self._scroller())
        self.models = ModelsPage(
            core.preferences,
            core.models,
            core.hub,
            actions[CommandId.ADD_FOLDER],
            actions[CommandId.GET_MODELS],
            self._scroller(),
        )
        self._preferences = core.preferences
        self._parent_of_shortcuts = self._scroller()
        self.storage = StoragePage(theme, core.preferences, core.storage, self._scroller())
        self.storage.show_chats.clicked.connect(actions[CommandId.MEMORY_MAP].trigger)
        self.server = ServerPage(
            theme, core.server, core.models, core.preferences, self._scroller()
        )
        self.advanced = AdvancedPage(theme, core, self._scroller())
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

    @cached_property
    def shortcuts(self) -> ShortcutsPage:
        """The page of the shortcuts. It is created when its tab is first opened.

        It has a row for each command, and takes half of the time of the whole window.
        """
        parent = self._parent_of_shortcuts
        page = ShortcutsPage(self._theme, self._preferences, parent)
        scroller = parent.parentWidget()
        assert isinstance(scroller, VerticalScroller)
        scroller.setWidget(page)
        return page

    def _build(self) -> None:
        for icon, name, page in (
            (Icon.GENERAL, words.GENERAL, self.general),
            (Icon.APPEARANCE, words.APPEARANCE, self.appearance),
            (Icon.CHAT, words.CHAT, self.chat),
            (Icon.NEW_CHAT, words.NEW_CHATS_TAB, self.new_chats),
            (Icon.MODEL, words.MODELS, self.models),
            (Icon.KEYBOARD, shortcuts.TAB, None),
            (Icon.STORAGE, words.STORAGE, self.storage),
            (Icon.SERVER, server_page.TAB, self.server),
            (Icon.ADVANCED, words.ADVANCED, self.advanced),
        ):
            self._add(icon, name, page)
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
        pages = (
            self.general,
            self.appearance,
            self.chat,
            self.new_chats,
            self.models,
            self.storage,
            self.server,
            self.advanced,
        )
        set_tab_order(*self.tabs.values(), *(one for page in pages for one in page.controls))
        focus_checked(self._group)
        self._group.buttons()[0].setChecked(True)
        self.tabs[Icon.KEYBOARD].clicked.connect(lambda: self.shortcuts)

    def _scroller(self) -> QWidget:
        """Add a view to the pages. Return the parent of the page in it."""
        scroller = VerticalScroller(self._pages)
        self._pages.addWidget(scroller)
        return scroller.viewport()

    def _add(self, icon: Icon, name: str, page: QWidget | None) -> None:
        tab = QToolButton(self)
        tab.setText(name)
        tab.setCheckable(True)
        tab.setProperty("kind", "tab")
        tab.setToolTip(name)
        tab.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # until it is checked
        scroller = self._pages.widget(len(self.tabs))
        assert isinstance(scroller, VerticalScroller)
        if page is not None:
            scroller.setWidget(page)
        tab.clicked.connect(lambda: self._pages.setCurrentWidget(scroller))
        self._group.addButton(tab)
        self._row.addWidget(tab)
        self.tabs[icon] = tab

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
        """Show the names of the tabs below their icons. Without them their tooltips have the names."""
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
