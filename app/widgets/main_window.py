"""The main window: creates its widgets, lays them out, and connects them to the controllers.

app/main.py creates one MainWindow from the Core, which has all controllers. The window is shown
before the engine is started. The window holds no conversations. It updates title, model name and
enabled commands when the controllers emit signals. Menu commands call the controllers through the
slots in `_slots`. `flush` saves the window's own state: frame, sidebar width, scroll position and
unsaved drafts. main.py calls `flush` before the app ends. Main thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from PySide6.QtCore import QEvent, Qt, QTimer, Signal
from PySide6.QtGui import (
    QCloseEvent,
    QDragEnterEvent,
    QDragLeaveEvent,
    QDropEvent,
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
from app.settings import Appearance
from app.theme.icons import Icon
from app.theme.palette import Theme
from app.theme.tokens import Size
from app.theme.window_style import make_window_style
from app.viewmodels.models import shown_name
from app.viewmodels.transcript import ScrollPosition
from app.widgets.answer_speaker import AnswerSpeaker
from app.widgets.attaching import has_droppable
from app.widgets.attention import Attention
from app.widgets.chat_commands import ChatCommands
from app.widgets.chat_pane import ChatPane
from app.widgets.chats_menu import ChatsMenu
from app.widgets.commands import CommandId, MenuName, fill_menu_bar, make_actions
from app.widgets.deleted_sheet import DeletedSheet
from app.widgets.dialogs import ask_for_folder, ask_where_to_save, show_about
from app.widgets.drop_outline import DropOutline
from app.widgets.editing import TextCommands
from app.widgets.exchange_commands import ExchangeCommands
from app.widgets.focus_order import set_tab_order
from app.widgets.folder_watch import FolderWatch
from app.widgets.found_text import FoundText
from app.widgets.inspector import Inspector
from app.widgets.inspector_panel import InspectorPanel
from app.widgets.key_choices import apply_choices
from app.widgets.list_commands import ListCommands
from app.widgets.model_change import ModelChange
from app.widgets.model_commands import ModelCommands
from app.widgets.model_notices import ModelNotices
from app.widgets.model_picker import ModelPicker
from app.widgets.models_window import ModelsTab, ModelsWindow
from app.widgets.own_windows import OwnWindows
from app.widgets.pane_toast import PaneToast
from app.widgets.paper.printing import Printing
from app.widgets.quitting import QuitGuard
from app.widgets.remembering import show_remembering
from app.widgets.settings_window import SettingsWindow
from app.widgets.shortcut_sheet import show_shortcuts
from app.widgets.sidebar import Sidebar
from app.widgets.sidebar_panel import SidebarPanel
from app.widgets.statistics_bar import StatisticsBar
from app.widgets.switching import Switching
from app.widgets.toolbar import Toolbar
from app.widgets.undo_names import UndoNames
from app.widgets.window_frame import FrameSaver, frame_text, restore_frame
from app.words import commands, diagnostics
from engine.problem import Problem
from engine.types import ConversationId

# Commands that work in every window of the app.
EVERYWHERE = (CommandId.CLOSE, CommandId.SETTINGS, CommandId.QUIT)
APPEARANCES = {
    Appearance.LIGHT: CommandId.LIGHT,
    Appearance.DARK: CommandId.DARK,
    Appearance.SYSTEM: CommandId.SYSTEM,
}


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
        self._models: ModelsWindow | None = None  # created on first use
        self._dress()
        self.setMinimumSize(Size.WINDOW_MIN_WIDTH, Size.WINDOW_MIN_HEIGHT)
        self.resize(Size.WINDOW_WIDTH, Size.WINDOW_HEIGHT)
        self._splitter, self._right = self._split()
        self.pane = ChatPane(theme, core, self._right)
        # Hold a reference: connecting a method of a plain Python object does not keep the object
        # alive.
        self._text_commands = TextCommands(self.pane.view, core.undoing)
        self.printing = Printing(self.pane.view.paper_kit, self)
        self._exchange = ExchangeCommands(self, core, origin, self.printing)
        self._beside = QHBoxLayout()  # the chat pane and the inspector
        self._inspecting = InspectorPanel(core, self._make_inspector)
        self.picker = ModelPicker(theme, core.models, core.hub, self)
        self._folder_watch = FolderWatch(core.models, self, self.picker)
        self._quitting = QuitGuard(
            self,
            lambda: core.turns.num_writing,
            lambda: core.turns.num_waiting,
            lambda: self.pane.transcript.edited_titles,
            lambda: core.preferences.value.confirm_quit,
        )
        self._chat_commands = ChatCommands(core, self.pane)
        self._list_commands = ListCommands(core, lambda: self.sidebar)
        self._model_commands = ModelCommands(core, self)
        self.commands = make_actions(self, self._slots())
        self._bind_commands()
        self.switching = Switching(theme, core, self.commands, self.pane.focus_text, self)
        self.sidebar = Sidebar(theme, core, origin, self.commands, self._splitter)
        self._sidebar_panel = SidebarPanel(
            self.sidebar, self._inspecting, core.preferences, self.pane.composer.edit, self
        )
        self.toolbar = Toolbar(theme, self.commands, self._right)
        self.toast = PaneToast(self.pane, core, self)
        self._model_notices = ModelNotices(core, self.toast.offer, self)
        self.toast.follow(self.printing)
        self.outline = DropOutline(theme, self.pane)
        self._attention = Attention(self, core.turns, core.library, self.toast.offer)
        self.speaker = AnswerSpeaker(self, core.turns, core.library, self.pane.transcript)
        self._build()
        self._connect()
        self._restore_places()
        self._apply_preferences()
        self._refresh()

    def _bind_commands(self) -> None:
        self._model_commands.bind(self.commands)
        OwnWindows(self, [self.commands[one] for one in EVERYWHERE])
        self.pane.find_bar.bind(self.commands)
        self.pane.composer.attach_button.trigger(self.commands[CommandId.ATTACH])

    @property
    def inspector(self) -> Inspector:
        return self._inspecting.inspector

    def show_problem(self, problem: Problem) -> None:
        """Show a toast with a problem that is not part of a conversation."""
        self.toast.warn(f"{problem.title} {problem.advice}".strip())

    def flush(self) -> None:
        """Save unsaved text, the window's frame, the sidebar's width and the scroll position."""
        self.pane.flush()
        self._inspecting.flush()
        if self._settings is not None:
            self._settings.new_chats.flush()
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
        self.setAcceptDrops(True)
        menus = fill_menu_bar(self.menuBar(), self.commands)
        undo, redo = self.commands[CommandId.UNDO], self.commands[CommandId.REDO]
        UndoNames(undo, redo, menus[MenuName.EDIT], self._core.undoing)
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
        set_tab_order(self.sidebar, self.pane, self.toolbar)
        self.pane.composer.edit.setFocus()

    def _make_inspector(self) -> Inspector:
        inspector = Inspector(self._right)
        inspector.hide()
        self._beside.addWidget(inspector)
        set_tab_order(self.sidebar, self.pane, inspector, self.toolbar)
        return inspector

    def _connect(self) -> None:
        core = self._core
        ModelChange(core, self)
        core.failed.connect(self.show_problem)
        self.printing.failed.connect(self.show_problem)
        for changed in (
            core.library.current_changed,
            core.library.list_changed,
            core.library.recently_deleted_changed,
            core.models.status_changed,
            core.models.cards_changed,
            core.presets.changed,
            core.folders.changed,
            self.sidebar.archived_toggled,
            self.sidebar.list.selection_changed,
        ):
            changed.connect(self._refresh)
        core.desk.changed.connect(self._on_conversation_changed)
        core.turns.activity_changed.connect(self._on_conversation_changed)
        core.idle.note_changed.connect(self._refresh_model)
        core.opening.note_changed.connect(self._refresh_model)
        core.chat.restored.connect(core.library.select)
        core.search.located.connect(self.pane.transcript.show_message)
        FoundText(core.search, core.library, self.pane.find_bar, self)
        self.pane.view.click_actions.save_requested.connect(self._save_text)
        core.preferences.changed.connect(self._apply_preferences)
        self.sidebar.list.typed.connect(self.pane.composer.type)
        self.sidebar.menus.export_requested.connect(self._exchange.export_chats)
        self.sidebar.memory.clicked.connect(self._open_storage)
        self.pane.transcript.storage_requested.connect(self._open_storage)
        self.sidebar.search_ended.connect(self.pane.composer.edit.setFocus)
        self.toolbar.renamed.connect(core.organiser.rename)
        self.toolbar.title_closed.connect(self.pane.composer.edit.setFocus)
        self._sidebar_panel.changed.connect(self._on_sidebar_changed)
        self.pane.choose_model_requested.connect(self._choose_model)
        self.pane.get_models_requested.connect(self._get_models)
        self.picker.get_models_requested.connect(self._get_models)
        self.sidebar.downloads.clicked.connect(lambda: self._open_models(ModelsTab.DOWNLOADS))
        self.pane.sending.connect(self._inspecting.flush)
        core.undo.starting.connect(self.pane.flush)
        self.pane.view.verticalScrollBar().valueChanged.connect(self._on_scrolled)
        self.picker.add_folder_requested.connect(self._add_folder)
        self._theme.changed.connect(self._dress)
        self._theme.zoomed.connect(self._dress)

    def _slots(self) -> Mapping[CommandId, Callable[[], object]]:
        preferences, text = self._core.preferences, self._text_commands
        return {
            **self._chat_commands.slots(),
            **self._list_commands.slots(),
            **self._model_commands.slots(),
            CommandId.NEW_CHAT: self._new_chat,
            CommandId.ATTACH: self.pane.attaching.choose,
            CommandId.IMPORT: self._exchange.import_chats,
            CommandId.EXPORT: self._exchange.export_chat,
            CommandId.EXPORT_ALL: self._exchange.export_all,
            CommandId.SAVE_PDF: self._exchange.save_pdf,
            CommandId.PRINT: self._exchange.print_chat,
            CommandId.SETTINGS: self._open_settings,
            CommandId.CLOSE: self._close_active,
            CommandId.QUIT: self._quitting.quit,
            CommandId.UNDO: text.undo,
            CommandId.REDO: text.redo,
            CommandId.CUT: text.cut,
            CommandId.COPY: text.copy,
            CommandId.PASTE: text.paste,
            CommandId.SELECT_ALL: self._select_all,
            CommandId.SEARCH: self._search,
            CommandId.SWITCHER: lambda: self.switching.open(),  # noqa: PLW0108 (created later)
            CommandId.SIDEBAR: lambda: self._sidebar_panel.toggle(),  # noqa: PLW0108 (created later)
            CommandId.INSPECTOR: preferences.toggle_inspector,
            CommandId.LIGHT: lambda: preferences.change(appearance=Appearance.LIGHT),
            CommandId.DARK: lambda: preferences.change(appearance=Appearance.DARK),
            CommandId.SYSTEM: lambda: preferences.change(appearance=Appearance.SYSTEM),
            CommandId.CONTRAST: preferences.toggle_contrast,
            CommandId.ZOOM_IN: preferences.zoom_in,
            CommandId.ZOOM_OUT: preferences.zoom_out,
            CommandId.ZOOM_RESET: preferences.zoom_reset,
            CommandId.FULL_SCREEN: self._toggle_full_screen,
            CommandId.COPY_CHAT: self._exchange.copy_chat,
            CommandId.RENAME: self._edit_title,
            CommandId.RECENTLY_DELETED: self._show_deleted,
            CommandId.CHOOSE_MODEL: self._choose_model,
            CommandId.GET_MODELS: self._get_models,
            CommandId.ADD_FOLDER: self._add_folder,
            CommandId.READ_AHEAD: preferences.toggle_read_ahead,
            CommandId.MINIMISE: self.showMinimized,
            CommandId.ZOOM: self._toggle_maximized,
            CommandId.ALL_TO_FRONT: _raise_all,
            CommandId.REMEMBERING: lambda: show_remembering(self._theme, self),
            CommandId.SHORTCUTS: lambda: show_shortcuts(
                self, preferences.value.shortcuts, return_sends=preferences.value.return_sends
            ),
            CommandId.DIAGNOSTICS: lambda: ask_where_to_save(
                self, diagnostics.FILE_NAME, self._core.diagnostics.save
            ),
            CommandId.ABOUT: lambda: show_about(self),
        }

    def _new_chat(self) -> None:
        self.pane.flush()  # a typed draft is a change: the chat is not blank
        self._core.library.new_chat()
        self.pane.composer.edit.setFocus()

    def _open_settings(self) -> SettingsWindow:
        if self._settings is None:
            self._settings = SettingsWindow(self._theme, self._core, self.commands, self)
        self._settings.open()
        return self._settings

    def _open_storage(self) -> None:
        self._open_settings().tabs[Icon.STORAGE].click()

    def _close_active(self) -> None:
        """Close the active window of the app: the main window, the settings or a dialog."""
        (QApplication.activeWindow() or self).close()

    def _select_all(self) -> None:
        """Select all chats of the list if it has the focus, else all text."""
        if self.sidebar.list.hasFocus():
            self.sidebar.list.selectAll()
        else:
            self._text_commands.select_all()

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

    def _choose_model(self) -> None:
        self.picker.open_below(self.toolbar.model_button)

    def _get_models(self) -> None:
        self._open_models(None)

    def _open_models(self, tab: ModelsTab | None) -> None:
        if self._models is None:
            self._models = ModelsWindow(self._core, self)
            self._folder_watch.add_list(self._models)
        self._models.open(tab)

    def _add_folder(self) -> None:
        ask_for_folder(self, self._core.folder_search.add)

    def _search(self) -> None:
        if not self.sidebar.isVisible():
            self._sidebar_panel.toggle()
        self.sidebar.begin_search()

    def _toggle_full_screen(self) -> None:
        self.setWindowState(self.windowState() ^ Qt.WindowState.WindowFullScreen)

    def _toggle_maximized(self) -> None:
        self.setWindowState(self.windowState() ^ Qt.WindowState.WindowMaximized)

    def _apply_preferences(self) -> None:
        value = self._core.preferences.value
        self._theme.set_appearance(value.appearance)
        self._theme.set_sharp(value.more_contrast)
        self._theme.set_zoom(value.text_zoom / 100)
        self._inspecting.set_zoom(self._theme.zoom)
        apply_choices(self.commands, value.shortcuts)
        self.commands[CommandId.CONTRAST].setChecked(value.more_contrast)
        self.commands[APPEARANCES[value.appearance]].setChecked(True)
        self.commands[CommandId.INSPECTOR].setChecked(value.inspector_visible)
        self.commands[CommandId.READ_AHEAD].setChecked(value.read_ahead)
        field = self.pane.composer.edit
        self._inspecting.set_visible(visible=value.inspector_visible, heir=field)
        self._sidebar_panel.refresh()

    def _on_sidebar_changed(self, visible: bool) -> None:  # noqa: FBT001 (signal)
        self.commands[CommandId.SIDEBAR].setChecked(visible)
        self.toolbar.set_sidebar_visible(visible)

    def _on_conversation_changed(self, conversation_id: ConversationId) -> None:
        if conversation_id == self._core.library.current:
            self._refresh()

    def _refresh(self) -> None:
        core = self._core
        conversation = core.desk.get(core.library.current)
        self.toolbar.set_title(conversation.conversation_id, conversation.title)
        self.setWindowTitle(conversation.title)
        self._refresh_model()
        self._inspecting.refresh()
        self._chat_commands.refresh(self.commands)
        self._list_commands.refresh(self.commands)

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
    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() is QEvent.Type.WindowStateChange:
            is_full = self.isFullScreen()
            self.commands[CommandId.FULL_SCREEN].setText(
                commands.END_FULL_SCREEN if is_full else commands.FULL_SCREEN
            )

    @override
    def closeEvent(self, event: QCloseEvent) -> None:
        """Close the window. If this would quit the app, keep it open until the user confirms."""
        if QApplication.quitOnLastWindowClosed() and not self._quitting.may_quit():
            event.ignore()
        else:
            super().closeEvent(event)

    @override
    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Accept files from everywhere in the window, and outline the chat that gets them."""
        if has_droppable(event.mimeData()) and self.pane.composer.isEnabled():
            event.setDropAction(Qt.DropAction.CopyAction)
            event.accept()
            self.outline.cover()

    @override
    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:
        super().dragLeaveEvent(event)
        self.outline.hide()

    @override
    def dropEvent(self, event: QDropEvent) -> None:
        """Attach dropped files. They stay at their places."""
        self.outline.hide()
        event.setDropAction(Qt.DropAction.CopyAction)
        event.accept()
        self.pane.attaching.drop(event.mimeData())

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


def _raise_all() -> None:
    """Raise all visible windows of the app. The active one stays on top."""
    active = QApplication.activeWindow()
    for window in QApplication.topLevelWidgets():
        if window.isVisible() and window is not active:
            window.raise_()
    if active is not None:
        active.raise_()
