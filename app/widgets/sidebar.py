"""The sidebar: buttons, search, the list of conversations, the undo toast, the model in use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.controllers.core import Core
from app.controllers.origin import Origin
from app.conversation.folder import Folder
from app.conversation.placement import FolderId
from app.conversation.tree import ConversationSummary
from app.theme.icons import Icon
from app.theme.palette import Theme
from app.theme.tokens import Size, Space
from app.viewmodels.conversations import (
    ConversationRow,
    ConversationsModel,
    FolderRow,
    ListHeading,
    Row,
)
from app.viewmodels.direction import isolated
from app.viewmodels.document_lines import FolderMark
from app.viewmodels.models import shown_name, state_word, work_word
from app.viewmodels.search import FoundRow, found_rows
from app.viewmodels.sections import ListState, RowMaker
from app.widgets.commands import Actions, CommandId
from app.widgets.conversation_list import ConversationList
from app.widgets.folder_sheet import FolderSheet
from app.widgets.icon_button import IconButton, show_tip_of
from app.widgets.line_height import Sentences
from app.widgets.list_menus import ListMenus
from app.widgets.memory_line import MemoryLine
from app.widgets.search_field import SearchField
from app.widgets.search_filters import SearchFilters
from app.widgets.search_results import SearchResults
from app.widgets.sidebar_foot import SidebarFoot
from app.widgets.sidebar_footer import SidebarFooter
from app.widgets.toast import Toast
from app.words import folders as folder_words, window as words
from engine.types import ConversationId


class Sidebar(QWidget):
    """The left column of the window. The controllers provide its content and make all changes."""

    search_ended = Signal()  # the receiver focuses another widget
    archived_toggled = Signal()

    def __init__(
        self,
        theme: Theme,
        core: Core,
        origin: Origin,
        actions: Actions,
        parent: QWidget,
    ) -> None:
        super().__init__(parent)
        self.setObjectName("sidebar")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setMinimumWidth(Size.SIDEBAR_MIN)
        self.setMaximumWidth(Size.SIDEBAR_MAX)
        self._theme = theme
        self._library = core.library
        self._recently_deleted = core.recently_deleted
        self._organiser = core.organiser
        self._folders = core.folders
        self._presets = core.presets
        self._preferences = core.preferences
        self._make = RowMaker()
        self.shows_archived = False  # True: the list shows the archived chats
        # time of the last message of the chat on show, to find out that its row has moved
        self._sent_at: tuple[ConversationId | None, float] = (None, 0.0)
        self._models = core.models
        self._turns = core.turns
        self._idle = core.idle
        self._opening, self._server = core.opening, core.server
        self._origin = origin
        self._rows = ConversationsModel(self)
        self._search = core.search
        self.search = SearchField(theme, self)
        self.filters = SearchFilters(theme, core, self.search.filter_button, self)
        self.list = ConversationList(theme, self._rows, self)
        self.menus = ListMenus(self.list, core, actions)
        self.results = SearchResults(theme, self)
        self.nothing_found = Sentences(self)
        self.foot = SidebarFoot(theme, core.hub, self)
        self.footer = SidebarFooter(self)
        self.memory = MemoryLine(core, self)
        self._toast_box = QWidget(self)
        self.toast = Toast(self._toast_box)
        self._build(theme, actions)
        self._connect(core, actions)
        self._refresh_list()
        self._show_found()
        self._show_deleted_row()
        self._refresh_footer()

    def begin_search(self) -> None:
        """Focus the search field, with its text selected."""
        self.search.edit.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.search.edit.selectAll()

    @property
    def chosen_chats(self) -> list[ConversationId]:
        """The chats that commands act on: the selected ones, else the one on show."""
        # While chats are being deleted, the list may still have them.
        several = [one for one in self.list.selected if one in self._library.listed]
        if len(several) > 1 and self.list.isVisible():
            return several
        current = self._library.current
        return [current] if current in self._library.listed else []

    def show_archived(self, shows: bool) -> None:  # noqa: FBT001 (the value)
        """Show the archived chats in the list, or the others."""
        self.shows_archived = shows
        self._refresh_list()
        self.archived_toggled.emit()

    def ask_for_folder(self, folder: Folder | None, chats: list[ConversationId]) -> None:
        """Open the sheet of a folder, or of a new one into which chats are then put."""
        sheet = FolderSheet(self._theme, folder, self._presets.value, self.window())

        def on_saved(saved: Folder) -> None:
            self._on_folder_saved(saved, chats)

        sheet.saved.connect(on_saved)
        sheet.documents_requested.connect(lambda: self.menus.documents_requested.emit(folder))
        sheet.open()

    def mark_folders(self, mark_of: Callable[[FolderId], FolderMark | None]) -> None:
        """Show a mark in the rows of folders that have documents."""
        self._rows.mark_of = mark_of

    def _on_dropped(self, chats: list[ConversationId], target: Row | None) -> None:
        """Put chats where they were dropped: in a folder, among the pinned ones, or the others."""
        if self.shows_archived:
            return
        match target:
            case FolderRow():
                self._organiser.move(chats, target.folder_id)
            case ConversationRow() if not target.pinned:
                self._organiser.move(chats, target.folder_id)
            case ConversationRow() | ListHeading(folder_words.PINNED):
                self._organiser.pin(chats, pinned=True)
            case _:
                self._organiser.move(chats, None)

    def _on_folder_saved(self, folder: Folder, chats: list[ConversationId]) -> None:
        if folder.folder_id:
            now = self._folders.get(folder.folder_id)
            if now is not None:
                self._folders.change(replace(folder, documents=now.documents))
            return
        made = self._folders.create(folder)
        if chats:
            self._organiser.move(chats, made.folder_id)

    def _build(self, theme: Theme, actions: Actions) -> None:
        show_tip_of(actions[CommandId.SEARCH], self.search.edit)
        top = QHBoxLayout()
        top.setContentsMargins(Space.S + Space.HAIR, 0, Space.S + Space.HAIR, 0)
        top.addStretch()
        for icon, command in (
            (Icon.SIDEBAR, CommandId.SIDEBAR),
            (Icon.NEW_CHAT, CommandId.NEW_CHAT),
        ):
            button = IconButton(theme, icon, actions[command].text(), self)
            button.trigger(actions[command])
            top.addWidget(button)
        header = QWidget(self)
        header.setFixedHeight(Size.TOOLBAR)
        header.setLayout(top)
        toast_box = QVBoxLayout(self._toast_box)
        toast_box.setContentsMargins(Space.S, Space.XS, Space.S, Space.S)
        toast_box.addWidget(self.toast)
        self._toast_box.hide()
        self.toast.presented.connect(self._toast_box.show)
        self.toast.ended.connect(self._toast_box.hide)
        self.nothing_found.setProperty("tone", "secondary")
        self.nothing_found.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.nothing_found.setContentsMargins(Space.L + Space.XS, Space.S, Space.L, 0)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(header)
        layout.addWidget(self.search)
        layout.addWidget(self.filters)
        layout.addWidget(self.list, 1)
        layout.addWidget(self.results, 1)
        layout.addWidget(self.nothing_found, 1)
        layout.addWidget(self.foot)
        layout.addWidget(self._toast_box)
        layout.addWidget(self.footer)
        memory_box = QVBoxLayout()
        memory_box.setContentsMargins(Space.S, 0, Space.S, 0)
        memory_box.addWidget(self.memory)
        layout.addLayout(memory_box)

    def _show_states(self, core: Core) -> None:
        """Show where the state of each chat is, and in its tooltip what its next message costs."""
        self._rows.state_of = core.chat_states.of
        core.chat_states.changed.connect(self.list.viewport().update)
        self.list.tip_shown.connect(core.action_costs.of_chat)

    def _connect(self, core: Core, actions: Actions) -> None:
        self.list.chosen.connect(self._library.select)
        self.list.pointed_at.connect(self._library.expect)
        self._show_states(core)
        self.list.delete_requested.connect(self._organiser.delete)
        self.list.folder_toggled.connect(self._organiser.toggle_folder)
        self.list.dropped.connect(self._on_dropped)
        self.menus.folder_sheet_requested.connect(self.ask_for_folder)
        self._rows.rename_requested.connect(self._organiser.rename)
        self._rows.folder_rename_requested.connect(self._folders.rename)
        self._organiser.changed.connect(self._refresh_list)
        self._organiser.done.connect(self._offer_undo)
        core.chat_copies.done.connect(self._offer_undo)
        self._folders.deleted.connect(self._on_folder_deleted)
        self.foot.archived.clicked.connect(lambda: self.show_archived(not self.shows_archived))
        self.search.edit.textChanged.connect(self._search.look_for)
        self.search.edit.submitted.connect(self.results.open_first)
        self.search.edit.left_below.connect(self.results.enter)
        self.search.edit.ended.connect(self._end_search)
        self.results.opened.connect(self._open_found)
        self.results.typed.connect(self.search.type)
        self.results.left_above.connect(self.search.edit.setFocus)
        self.results.ended.connect(self._end_search)
        self._search.changed.connect(self._show_found)
        self._library.current_changed.connect(lambda: self.results.follow(self._library.current))
        core.deletions.deleted.connect(self._on_deleted)
        core.undo.undone.connect(self.toast.withdraw)
        core.turns.activity_changed.connect(self._on_activity_changed)
        core.turns.rate_changed.connect(self._on_activity_changed)
        self._models.status_changed.connect(self._refresh_footer)
        self._models.cards_changed.connect(self._refresh_footer)
        self._idle.note_changed.connect(self._refresh_footer)
        self._turns.activity_changed.connect(self._refresh_footer)
        self._turns.line_changed.connect(self._refresh_footer)
        self._opening.note_changed.connect(self._refresh_footer)
        self._server.activity_changed.connect(self._refresh_footer)
        self.foot.deleted.clicked.connect(actions[CommandId.RECENTLY_DELETED].trigger)
        self._recently_deleted.changed.connect(self._show_deleted_row)
        self.footer.clicked.connect(actions[CommandId.CHOOSE_MODEL].trigger)
        actions[CommandId.NEW_CHAT].triggered.connect(self._end_search)

    def _refresh_list(self) -> None:
        library = self._library
        state = ListState(
            now=self._origin.now(),
            activity={one: self._activity(one) for one in self._turns.answering},
            unseen=library.unseen.ids,
            closed=self._organiser.closed_folders,
        )
        archived = library.listed.archived
        self.shows_archived = self.shows_archived and bool(archived)
        if self.shows_archived:
            order = self._preferences.value.chat_order
            rows = self._make.archived_rows(archived, order, state)
        else:
            rows = self._make.rows(self._organiser.arrangement, state)
        self.list.show_rows(rows, library.current)
        self._follow_current()
        self.foot.show_archive(len(archived), is_open=self.shows_archived)

    def _follow_current(self) -> None:
        """Keep the chat on show visible when a new message in it moves its row to the top."""
        current, before = self._library.current, self._sent_at
        if current in self._library.listed:
            self._sent_at = current, self._library.listed.summary(current).updated_at
            if self._sent_at > (current, before[1]) and before[0] == current:
                self.list.follow()

    def _show_found(self) -> None:
        """Show the list of conversations, or what was found in place of it."""
        found = self._search.found if self._search.words else None
        self.results.show_rows(found_rows(found or ()))
        if self._search.words:
            self.nothing_found.setText(words.nothing_found(self._search.words))
        self.list.setVisible(found is None)
        self.results.setVisible(bool(found))
        self.nothing_found.setVisible(found == ())

    def _open_found(self, row: FoundRow) -> None:
        found = row.text[row.start : row.end]
        self._search.open(row.conversation_id, row.node_id, found, row.file)

    def _end_search(self) -> None:
        self._search.end()
        self.search.edit.clear()
        self.search_ended.emit()

    def _show_deleted_row(self) -> None:
        self.foot.show_deleted(len(self._recently_deleted.items))

    def _on_activity_changed(self, conversation_id: ConversationId) -> None:
        self._rows.set_activity(conversation_id, self._activity(conversation_id))

    def _activity(self, conversation_id: ConversationId) -> str:
        """Return the text about a conversation's running answer; "" if none is running."""
        live = self._turns.live_in(conversation_id)
        return "" if live is None else live.activity

    def _refresh_footer(self) -> None:
        status = self._models.status
        fraction = status.fraction if status.will_be_ready else None
        name = shown_name(status, self._models.cards)
        note = self._opening.note
        if not (note or status.will_be_ready):
            note = work_word(tuple(one.phase for one in self._turns.live.values()))
            for_others = words.ANSWERS_PROGRAM if self._server.num_open else ""
            note = note or for_others or self._idle.note
        self.footer.show_model(name, note or state_word(status), fraction)

    def _on_deleted(
        self, summaries: tuple[ConversationSummary, ...], undo: Callable[[], object]
    ) -> None:
        titles = [isolated(self._elided(one.title)) for one in summaries]
        count = len(titles)
        text = words.deleted_chat(titles[0]) if count == 1 else words.deleted_chats(count)
        self.toast.offer_undo(text, undo)

    def _on_folder_deleted(self, folder: Folder, undo: Callable[[], object]) -> None:
        text = folder_words.toast_deleted_folder(self._elided(folder.name))
        self.toast.offer_undo(text, undo)

    def _offer_undo(self, text: str, undo: Callable[[], object]) -> None:
        self.toast.offer_undo(text, undo)

    def _elided(self, name: str) -> str:
        metrics = QFontMetrics(self.toast.font())
        room = Size.SIDEBAR_MIN - Space.HUGE
        return metrics.elidedText(name, Qt.TextElideMode.ElideRight, room)
