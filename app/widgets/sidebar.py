"""The sidebar: buttons, search, the list of conversations, the undo toast, the model in use."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.controllers.core import Core
from app.controllers.origin import Origin
from app.conversation.tree import ConversationSummary
from app.theme.icons import Icon
from app.theme.palette import Theme
from app.theme.tokens import Size, Space
from app.viewmodels.conversations import ConversationsModel, make_rows
from app.viewmodels.direction import isolated
from app.viewmodels.models import shown_name, state_word
from app.viewmodels.search import FoundRow, found_rows
from app.widgets.button import Button
from app.widgets.commands import Actions, CommandId
from app.widgets.conversation_list import ConversationList
from app.widgets.icon_button import IconButton
from app.widgets.line_height import Sentences
from app.widgets.search_field import SearchField
from app.widgets.search_results import SearchResults
from app.widgets.sidebar_footer import SidebarFooter
from app.widgets.toast import Toast
from app.words import commands, deleted, window as words
from engine.types import ConversationId


class Sidebar(QWidget):
    """The left column of the window. The controllers provide its content and make all changes."""

    search_ended = Signal()  # the receiver focuses another widget

    def __init__(
        self,
        theme: Theme,
        core: Core,
        origin: Origin,
        actions: Actions,
    ) -> None:
        super().__init__()
        self.setObjectName("sidebar")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setMinimumWidth(Size.SIDEBAR_MIN)
        self.setMaximumWidth(Size.SIDEBAR_MAX)
        self._library = core.library
        self._models = core.models
        self._idle = core.idle
        self._opening = core.opening
        self._origin = origin
        self._rows = ConversationsModel(self)
        self._search = core.search
        self.search = SearchField(theme, self)
        self.list = ConversationList(theme, self._rows, self)
        self.results = SearchResults(theme, self)
        self.nothing_found = Sentences(self)
        self.deleted_button = Button(deleted.TITLE, self)
        self.footer = SidebarFooter(self)
        self.toast = Toast(self)
        self._build(theme, actions)
        self._connect(core, actions)
        self._refresh_list()
        self._show_found()
        self._show_deleted_button()
        self._refresh_footer()

    def begin_search(self) -> None:
        """Focus the search field, with its text selected."""
        self.search.edit.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.search.edit.selectAll()

    def _build(self, theme: Theme, actions: Actions) -> None:
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
        toast_box = QVBoxLayout()
        toast_box.setContentsMargins(Space.S, 0, Space.S, Space.S)
        toast_box.addWidget(self.toast)
        self.nothing_found.setProperty("tone", "secondary")
        self.nothing_found.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.nothing_found.setContentsMargins(Space.L + Space.XS, Space.S, Space.L, 0)
        self.deleted_button.setObjectName("recentlyDeleted")
        self.deleted_button.setProperty("kind", "row")
        deleted_box = QVBoxLayout()
        deleted_box.setContentsMargins(Space.S, Space.XS, Space.S, Space.XS)
        deleted_box.addWidget(self.deleted_button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(header)
        layout.addWidget(self.search)
        layout.addWidget(self.list, 1)
        layout.addWidget(self.results, 1)
        layout.addWidget(self.nothing_found, 1)
        layout.addLayout(deleted_box)
        layout.addLayout(toast_box)
        layout.addWidget(self.footer)

    def _connect(self, core: Core, actions: Actions) -> None:
        self.list.chosen.connect(self._library.select)
        self.list.pointed_at.connect(self._library.expect)
        self.list.delete_requested.connect(self._library.delete)
        self.list.keep_ready_requested.connect(self._library.keep_ready)
        self._rows.rename_requested.connect(self._library.rename)
        self._library.list_changed.connect(self._refresh_list)
        self.search.edit.textChanged.connect(self._search.look_for)
        self.search.edit.submitted.connect(self.results.open_first)
        self.search.edit.left_below.connect(self.results.enter)
        self.search.edit.ended.connect(self._end_search)
        self.results.opened.connect(self._open_found)
        self.results.typed.connect(self.search.type)
        self.results.left_above.connect(self.search.edit.setFocus)
        self.results.ended.connect(self._end_search)
        self._search.changed.connect(self._show_found)
        self._library.deleted.connect(self._on_deleted)
        core.undo.undone.connect(self.toast.withdraw)
        core.turns.activity_changed.connect(self._on_activity_changed)
        core.turns.rate_changed.connect(self._on_activity_changed)
        self._models.status_changed.connect(self._refresh_footer)
        self._models.cards_changed.connect(self._refresh_footer)
        self._idle.note_changed.connect(self._refresh_footer)
        self._opening.note_changed.connect(self._refresh_footer)
        self.deleted_button.clicked.connect(actions[CommandId.RECENTLY_DELETED].trigger)
        self._library.recently_deleted_changed.connect(self._show_deleted_button)
        self.footer.clicked.connect(actions[CommandId.CHOOSE_MODEL].trigger)

    def _refresh_list(self) -> None:
        library = self._library
        rows = make_rows(library.summaries, library.activity, library.unseen, self._origin.now())
        self.list.show_rows(rows, library.current)

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
        self._search.open(row.conversation_id, row.node_id)

    def _end_search(self) -> None:
        self.search.edit.clear()
        self.search_ended.emit()

    def _show_deleted_button(self) -> None:
        self.deleted_button.setVisible(bool(self._library.recently_deleted))

    def _on_activity_changed(self, conversation_id: ConversationId) -> None:
        self._rows.set_activity(conversation_id, self._library.activity(conversation_id))

    def _refresh_footer(self) -> None:
        status = self._models.status
        fraction = status.fraction if status.will_be_ready else None
        name = shown_name(status, self._models.cards)
        note = self._opening.note or ("" if status.will_be_ready else self._idle.note)
        self.footer.show_model(name, note or state_word(status), fraction)

    def _on_deleted(self, summary: ConversationSummary, undo: Callable[[], object]) -> None:
        metrics = QFontMetrics(self.toast.font())
        title = metrics.elidedText(
            summary.title, Qt.TextElideMode.ElideRight, Size.SIDEBAR_MIN - Space.HUGE
        )
        self.toast.offer(words.deleted_chat(isolated(title)), commands.UNDO, undo)
