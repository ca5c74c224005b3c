"""The main window: creates its widgets, lays them out, and connects them to the controllers.

app/main.py creates one MainWindow from the Core, which has all controllers. The window is shown
before the engine is started. The window holds no conversations. It updates its title and the name
of the model when the controllers emit signals. Each menu command has an owner, such as
ChatCommands, which connects it and enables it. `flush` saves the window's own state: frame, sidebar
width, scroll position and unsaved drafts. main.py calls `flush` before the app ends. Main thread.
"""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QEvent, Qt, QTimer, Signal
from PySide6.QtGui import (
    QCloseEvent,
    QKeyEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import (
    QApplication,
    QHBoxLayout,
    QMainWindow,
    QSplitter,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from app.controllers.core import Core
from app.controllers.origin import Origin
from app.theme.icons import Icon
from app.theme.palette import Theme
from app.theme.tokens import Size
from app.theme.window_style import make_window_style
from app.viewmodels.models import shown_name
from app.viewmodels.transcript import ScrollPosition
from app.widgets.answer_commands import AnswerCommands
from app.widgets.answer_speaker import AnswerSpeaker
from app.widgets.attention import Attention
from app.widgets.branch_map.commands import BranchCommands
from app.widgets.chat_commands import ChatCommands
from app.widgets.chat_pane import ChatPane
from app.widgets.chats_menu import ChatsMenu
from app.widgets.commands import CommandId, MenuName, connect_actions, fill_menu_bar, make_actions
from app.widgets.deleted_sheet import DeletedSheet
from app.widgets.dialogs import ask_where_to_save
from app.widgets.editing import PossibleEdits, TextCommands
from app.widgets.exchange_commands import ExchangeCommands
from app.widgets.file_drop import FileDrop
from app.widgets.focus_order import set_tab_order
from app.widgets.folder_documents import DocumentsOfFolders
from app.widgets.found_text import FoundText
from app.widgets.help_commands import HelpCommands
from app.widgets.inspector import Inspector
from app.widgets.inspector_panel import InspectorPanel
from app.widgets.list_commands import ListCommands
from app.widgets.model_change import ModelChange
from app.widgets.model_commands import ModelCommands
from app.widgets.model_notices import ModelNotices
from app.widgets.model_picker import ModelPicker
from app.widgets.pane_toast import PaneToast
from app.widgets.paper.printing import Printing
from app.widgets.preference_commands import PreferenceCommands
from app.widgets.quitting import QuitGuard
from app.widgets.settings_window import SettingsWindow
from app.widgets.sidebar import Sidebar
from app.widgets.sidebar_panel import SidebarPanel
from app.widgets.statistics_bar import StatisticsBar
from app.widgets.switching import Switching
from app.widgets.toolbar import Toolbar
from app.widgets.undo_names import UndoNames
from app.widgets.why_read import WhyRead
from app.widgets.window_commands import WindowCommands
from app.widgets.window_frame import FrameSaver, frame_text, restore_frame
from engine.problem import Problem
from engine.types import ConversationId


class MainWindow(QMainWindow):
    """The window: sidebar at the left; toolbar, chat pane and inspector at the right."""

    painted = Signal()  # emitted once, after the first paint; main.py then starts the engine

    def __init__(self, theme: Theme, core: Core, origin: Origin) -> None:
        super().__init__()
        self._theme = theme
        self._core = core
        self._origin = origin
        self._was_painted = False
        self._settings: SettingsWindow | None = None  # created on first use
        self._dress()
        self.setMinimumSize(Size.WINDOW_MIN_WIDTH, Size.WINDOW_MIN_HEIGHT)
        self.resize(Size.WINDOW_WIDTH, Size.WINDOW_HEIGHT)
        self.commands = make_actions(self)
        self._splitter, self._right = self._split()
        self.pane = ChatPane(theme, core, self._right)
        self.printing = Printing(self.pane.view.paper_kit, self)
        self._beside = QHBoxLayout()  # the chat pane and the inspector
        self._inspecting = InspectorPanel(core, self._make_inspector)
        self._quitting = QuitGuard(
            self,
            lambda: core.turns.num_writing,
            lambda: core.turns.num_waiting,
            lambda: core.server.num_open,
            lambda: self.pane.transcript.edits.titles,
            lambda: core.preferences.value.confirm_quit,
        )
        self._quitting.accepted.connect(self.pane.transcript.edits.drop)
        # Create this before Sidebar. Both have a slot of New Chat, and Qt calls slots in the order
        # of connection: ChatCommands shows the chat, then the sidebar ends its search.
        ChatCommands(core, self.pane, self.commands)
        self.switching = Switching(theme, core, self.commands, self.pane.focus_text, self)
        self.sidebar = Sidebar(theme, core, origin, self.commands, self._splitter)
        self._sidebar_panel = SidebarPanel(
            self.sidebar, self._inspecting, core.preferences, self.pane.composer.edit, self
        )
        self.toolbar = Toolbar(theme, self.commands, self._right)
        self.toast = PaneToast(self.pane, core, self)
        ModelNotices(core, self.toast.offer, self)
        self.toast.follow(self.printing)
        self.file_drop = FileDrop(theme, self.pane, self)
        self.documents = DocumentsOfFolders(
            theme, core, self.sidebar, self.pane, self.file_drop, self.toast
        )
        self._attention = Attention(self, core.turns, core.library, self.toast)
        self.speaker = AnswerSpeaker(self, core.turns, core.library, self.pane.transcript)
        self._build()
        self._connect_commands()
        self._connect()
        self._restore_places()
        self._apply_preferences()
        self._refresh_title()
        self._refresh_model()

    @property
    def inspector(self) -> Inspector:
        return self._inspecting.inspector

    @property
    def picker(self) -> ModelPicker:
        return self._models.picker

    def show_problem(self, problem: Problem) -> None:
        """Show a toast with a problem that is not part of a conversation."""
        self.toast.warn(f"{problem.title} {problem.advice}".strip())

    def flush(self) -> None:
        """Save unsaved text, the window's frame, the sidebar's width and the scroll position."""
        self.pane.draft.flush()
        self._inspecting.flush()
        if self._settings is not None:
            self._settings.flush()
        preferences = self._core.preferences
        value = replace(preferences.value, window_geometry=frame_text(self))
        if self.sidebar.isVisible():
            value = replace(value, sidebar_width=self.sidebar.width())
        position = self.pane.transcript.position or ScrollPosition("", 0)
        preferences.set(replace(value, read_message=position.key, read_offset=position.offset))

    def _restore_places(self) -> None:
        """Restore the frame of the window, and pass the saved scroll position to the transcript.

        The position applies to the conversation that is shown first.
        """
        value = self._core.preferences.value
        restore_frame(self, value.window_geometry)
        FrameSaver(self, self._core.preferences)
        if value.selected_conversation is not None:
            position = ScrollPosition(value.read_message, value.read_offset)
            self.pane.transcript.leave_at(value.selected_conversation, position)
        # After a crash there is no position, and the next start shows the end of the conversation.
        self._core.preferences.change(read_message="", read_offset=0)

    def _split(self) -> tuple[QSplitter, QWidget]:
        """Make the splitter of the window and its right part, which is empty.

        Qt styles a widget again, with all in it, when its parent changes. So the outer widgets are
        created first.
        """
        splitter = QSplitter(Qt.Orientation.Horizontal, self)
        splitter.setHandleWidth(1)
        splitter.setChildrenCollapsible(False)
        self.setCentralWidget(splitter)
        return splitter, QWidget(splitter)

    def _build(self) -> None:
        menus = fill_menu_bar(self.menuBar(), self.commands)
        undo, redo = self.commands[CommandId.UNDO], self.commands[CommandId.REDO]
        AnswerCommands(self._core, self.pane, self.commands, menus[MenuName.CHAT])
        UndoNames(undo, redo, menus[MenuName.EDIT], self._core.undoing)
        PossibleEdits(self.pane.reading, self._core.undoing, self.commands, menus[MenuName.EDIT])
        ChatsMenu(menus[MenuName.WINDOW], self._core.library, self._core.organiser)
        self._beside.setSpacing(0)
        self._beside.addWidget(self.pane, 1)
        splitter = self._splitter
        splitter.insertWidget(0, self.sidebar)
        column = QVBoxLayout(self._right)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.toolbar)
        column.addLayout(self._beside, 1)
        if self._core.statistics is not None:
            column.addWidget(StatisticsBar(self._core.statistics, self._right))
        splitter.setStretchFactor(1, 1)
        sidebar_width = self._core.preferences.value.sidebar_width or Size.SIDEBAR
        splitter.setSizes([sidebar_width, Size.WINDOW_WIDTH - sidebar_width])
        self._order_stops()
        self.pane.composer.edit.setFocus()

    def _make_inspector(self) -> Inspector:
        inspector = Inspector(self._right)
        inspector.hide()
        self._beside.addWidget(inspector)
        self._order_stops()
        return inspector

    def _order_stops(self) -> None:
        """Set the order in which Tab visits widgets. Call it when a part has created widgets."""
        inspectors = self._right.findChildren(Inspector)
        set_tab_order(self.sidebar, self.pane, *inspectors, self.toolbar)

    def _connect(self) -> None:
        core = self._core
        ModelChange(core, self)
        WhyRead(self._theme, core, self.pane.transcript, self._open_storage, self)
        core.failed.connect(self.show_problem)
        self.printing.failed.connect(self.show_problem)
        core.library.current_changed.connect(self._refresh_title)
        core.library.list_changed.connect(self._refresh_title)
        core.desk.changed.connect(self._on_conversation_changed)
        for changed in (
            core.models.status_changed,
            core.models.cards_changed,
            core.idle.note_changed,
            core.opening.note_changed,
        ):
            changed.connect(self._refresh_model)
        core.chat.restored.connect(core.library.select)
        core.search.located.connect(self.pane.show_message)
        FoundText(core.search, core.library, self.pane.find_bar, self)
        self.pane.view.click_actions.save_requested.connect(self._save_text)
        core.preferences.changed.connect(self._apply_preferences)
        self.sidebar.list.typed.connect(self.pane.composer.type)
        self.sidebar.memory.clicked.connect(self._open_storage)
        self.pane.transcript.storage_requested.connect(self._open_storage)
        self.sidebar.search_ended.connect(self.pane.composer.edit.setFocus)
        self.toolbar.renamed.connect(core.organiser.rename)
        self.toolbar.title_closed.connect(self.pane.composer.edit.setFocus)
        self._sidebar_panel.changed.connect(self._on_sidebar_changed)
        for filled in (self.pane.cards.filled, self.pane.reading.filled):
            filled.connect(self._order_stops)
        self.pane.sending.connect(self._inspecting.flush)
        core.undo.starting.connect(self.pane.draft.flush)
        self.pane.view.verticalScrollBar().valueChanged.connect(self._on_scrolled)
        self._theme.changed.connect(self._dress)
        self._theme.zoomed.connect(self._dress)

    def _connect_commands(self) -> None:
        """Create the owners of the other commands, which need no menus."""
        core, actions, pane = self._core, self.commands, self.pane
        ListCommands(core, self.sidebar, actions)
        TextCommands(pane.reading, self.sidebar.list, core.undoing, actions)
        PreferenceCommands(core.preferences, actions, self)
        WindowCommands(self, self._quitting.quit, actions)
        BranchCommands(self._theme, core, pane, actions, self)
        HelpCommands(self._theme, core, self, actions)
        exchange = ExchangeCommands(core, self._origin, self.printing, pane, actions)
        self.sidebar.menus.export_requested.connect(exchange.export_chats)
        self._models = models = ModelCommands(self._theme, core, self.toolbar, actions, self)
        pane.choose_model_requested.connect(models.choose_model)
        pane.get_models_requested.connect(models.get_models)
        self.sidebar.foot.downloads.clicked.connect(models.show_downloads)
        pane.find_bar.bind(actions)
        pane.composer.attach_button.trigger(actions[CommandId.ATTACH])
        slots = {
            CommandId.SETTINGS: self._open_settings,
            CommandId.SEARCH: self._search,
            CommandId.SWITCHER: self.switching.open,
            CommandId.SIDEBAR: self._sidebar_panel.toggle,
            CommandId.RENAME: self._edit_title,
            CommandId.RECENTLY_DELETED: self._show_deleted,
        }
        connect_actions(actions, slots)

    def _open_settings(self) -> SettingsWindow:
        if self._settings is None:
            self._settings = SettingsWindow(self._theme, self._core, self.commands, self)
        self._settings.open()
        return self._settings

    def _open_storage(self) -> None:
        self._open_settings().tabs[Icon.STORAGE].click()

    def _save_text(self, name: str, text: str) -> None:
        ask_where_to_save(self, name, lambda path: self._core.exports.save(path, text))

    def _edit_title(self) -> None:
        """Edit the title in the sidebar if the list has the focus, else edit it in the toolbar."""
        if self.sidebar.list.hasFocus():
            self.sidebar.list.edit_current()
        else:
            self.toolbar.edit_title()

    def _show_deleted(self) -> None:
        DeletedSheet(self._theme, self._core.recently_deleted, self._origin, self).open()

    def _search(self) -> None:
        if not self.sidebar.isVisible():
            self._sidebar_panel.toggle()
        self.sidebar.begin_search()

    def _apply_preferences(self) -> None:
        value = self._core.preferences.value
        self._theme.set_appearance(value.appearance)
        self._theme.set_sharp(value.more_contrast)
        self._theme.set_zoom(value.text_zoom / 100)
        self._inspecting.set_zoom(self._theme.zoom)
        field = self.pane.composer.edit
        self._inspecting.set_visible(visible=value.inspector_visible, heir=field)
        self._sidebar_panel.refresh()

    def _on_sidebar_changed(self, visible: bool) -> None:  # noqa: FBT001 (signal)
        self.commands[CommandId.SIDEBAR].setChecked(visible)
        self.toolbar.set_sidebar_visible(visible)

    def _on_conversation_changed(self, conversation_id: ConversationId) -> None:
        if conversation_id == self._core.library.current:
            self._refresh_title()

    def _refresh_title(self) -> None:
        conversation = self._core.desk.get(self._core.library.current)
        self.toolbar.set_title(conversation.conversation_id, conversation.title)
        self.setWindowTitle(conversation.title)

    def _refresh_model(self) -> None:
        core = self._core
        name = shown_name(core.models.status, core.models.cards)
        self.toolbar.set_model(name, core.opening.note or core.idle.note)

    def _on_scrolled(self, value: int) -> None:
        self.toolbar.set_scrolled(value > self.pane.view.verticalScrollBar().minimum())

    def _dress(self) -> None:
        theme = self._theme
        self.setStyleSheet(make_window_style(theme.colors, theme.fonts, theme.zoom))

    @override
    def event(self, event: QEvent) -> bool:
        if event.type() is QEvent.Type.Paint and not self._was_painted:
            self._was_painted = True
            QTimer.singleShot(0, self.painted.emit)
        return super().event(event)

    @override
    def closeEvent(self, event: QCloseEvent) -> None:
        """Close the window. If this would quit the app, keep it open until the user confirms."""
        if QApplication.quitOnLastWindowClosed() and not self._quitting.may_quit():
            event.ignore()
        else:
            super().closeEvent(event)

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.pane.escape()
        else:
            super().keyPressEvent(event)

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._inspecting.fit(self.width())
        self._sidebar_panel.refresh()
        if self.toast.isVisible():
            self.toast.place()
