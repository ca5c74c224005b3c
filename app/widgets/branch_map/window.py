"""The window with the branch map of the chat on show. Main thread."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QPoint, QSize, Qt, Signal
from PySide6.QtGui import QHideEvent, QKeySequence, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget
from typing_extensions import override

from app.controllers.core import Core
from app.conversation.forks import branch_of, branch_top, is_in_tree, num_from
from app.conversation.tree import Conversation, MessageNode, NodeId
from app.theme.palette import Theme
from app.theme.tokens import Size, Space
from app.viewmodels.branch_cost import BranchCost
from app.widgets.branch_map.compare_window import CompareWindow
from app.widgets.branch_map.view import BranchMapView
from app.widgets.button import Button
from app.widgets.button_row import ButtonRow, Label
from app.widgets.chat_pane import ChatPane
from app.widgets.focus_ring import FocusRing
from app.widgets.key_choices import native
from app.widgets.menu import Menu, pop_up
from app.widgets.own_windows import OwnWindow
from app.widgets.window_size import keep_on_screen, within_screen
from app.words import branches as words
from engine.types import ConversationId

Pair = tuple[tuple[MessageNode, ...], tuple[MessageNode, ...]]


class BranchMapWindow(OwnWindow):
    """The window. It is not modal. It is created once, and closing only hides it."""

    # argument: the ids of the branches' ends whose cost is on show; empty once the window is closed
    ends_seen = Signal(list)

    def __init__(self, theme: Theme, core: Core, pane: ChatPane, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Window)
        self.setObjectName("branches")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._theme = theme
        self._core = core
        self._pane = pane
        self._compare_window: CompareWindow | None = None  # created on first use
        self.summary = QLabel(self)
        self.smaller = Button(words.SMALLER, self)
        self.larger = Button(words.LARGER, self)
        self.map = BranchMapView(theme, self)
        self.empty = QLabel(words.NO_MESSAGES, self)
        above, below = (native(QKeySequence(keys)) for keys in ("Alt+Up", "Alt+Down"))
        self.keys = QLabel(words.keys(above=above, below=below), self)
        self.show_button = Button(words.SHOW, self)
        self.compare_button = Button(words.COMPARE, self)
        self.delete_button = Button(words.DELETE, self)
        self._buttons = ButtonRow(self.show_button, self.compare_button, self.delete_button)
        FocusRing(theme, self.map)
        self._build()
        self._connect()
        self._fit_text()

    def open(self) -> None:
        """Show the window at the place of the transcript, and bring it to the front."""
        was_visible = self.isVisible()
        self.show()
        if not was_visible:
            self._refresh()
            self.map.set_current(self.map.marks.here)
            self.map.center_on(self.map.current)
        self.raise_()
        self.activateWindow()
        self.map.setFocus()

    def show_costs(self, costs: Mapping[NodeId, BranchCost]) -> None:
        self.map.show_costs(costs)

    def note_place(self) -> None:
        """Mark the message at which the transcript stands now."""
        if self.isVisible():
            self.map.set_here(self._here())

    @property
    def _conversation(self) -> Conversation:
        return self._core.desk.get(self._core.library.current)

    def _here(self) -> NodeId | None:
        position = self._pane.transcript.position
        if position is not None and position.key in self.map.branches.shown:
            return NodeId(position.key)
        return self.map.branches.end_on_show

    def _build(self) -> None:
        top = QHBoxLayout()
        top.setSpacing(Space.S)
        self.summary.setProperty("tone", "secondary")
        top.addWidget(self.summary, 1)
        top.addWidget(self.smaller)
        top.addWidget(self.larger)
        self.empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.empty.setProperty("tone", "secondary")
        self.empty.hide()
        self.keys.setProperty("type", "small")
        self.keys.setProperty("tone", "tertiary")
        self.keys.setWordWrap(True)
        self.delete_button.setProperty("kind", "danger")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(Space.L, Space.M, Space.L, Space.M)
        layout.setSpacing(Space.S)
        layout.addLayout(top)
        layout.addWidget(self.map, 1)
        layout.addWidget(self.empty, 1)
        layout.addLayout(self._buttons)
        layout.addWidget(self.keys)
        self.setMinimumSize(within_screen(self, QSize(Size.NAME_WIDTH, Size.NAME_WIDTH)))

    def _connect(self) -> None:
        core, view = self._core, self.map
        self._theme.zoomed.connect(self._fit_text)
        core.library.current_changed.connect(self._on_current_changed)
        core.desk.changed.connect(self._on_chat_changed)
        core.turns.activity_changed.connect(self._on_activity_changed)
        view.chosen.connect(self._go_to)
        view.moved.connect(self._refresh_buttons)
        view.rested.connect(self._report_ends)
        view.delete_requested.connect(self.delete_button.click)
        view.menu_requested.connect(self._show_menu)
        self.smaller.clicked.connect(lambda: view.change_zoom(-1))
        self.larger.clicked.connect(lambda: view.change_zoom(1))
        self.show_button.clicked.connect(self._go_to_current)
        self.compare_button.clicked.connect(self._compare)
        self.delete_button.clicked.connect(self._prune)

    # Content

    def _on_current_changed(self) -> None:
        if self.isVisible():
            self._refresh()
            self.map.set_current(self.map.marks.here)
            self.map.center_on(self.map.current)

    def _on_chat_changed(self, conversation_id: ConversationId) -> None:
        if self.isVisible() and conversation_id == self._core.library.current:
            shown = self.map.branches.conversation
            if self._conversation.nodes != shown.nodes or self._conversation.shown != shown.shown:
                self._refresh()
            self._set_title()

    def _on_activity_changed(self, conversation_id: ConversationId) -> None:
        if self.isVisible() and conversation_id == self._core.library.current:
            self._refresh_buttons()

    def _refresh(self) -> None:
        self.map.show_conversation(self._conversation)
        branches = self.map.branches
        self.map.set_here(self._here())
        has_any = bool(branches.order)
        self.map.setVisible(has_any)
        self.empty.setVisible(not has_any)
        self.summary.setText(
            words.summary(messages=len(branches.order), branches=len(branches.ends)) * has_any
        )
        self._set_title()
        self._refresh_buttons()
        self._report_ends()

    def _set_title(self) -> None:
        self.setWindowTitle(words.title(self._conversation.title))

    def _report_ends(self) -> None:
        if self.isVisible():
            self.ends_seen.emit(self.map.visible_ends)

    def _refresh_buttons(self) -> None:
        """Enable the buttons with an effect. Tooltips explain why Compare or Delete has none."""
        current, conversation = self.map.current, self.map.branches.conversation
        self.show_button.setEnabled(current is not None)
        self.smaller.setEnabled(self.map.can_zoom(-1))
        self.larger.setEnabled(self.map.can_zoom(1))
        pair = self._pair()
        self.compare_button.setEnabled(pair is not None)
        has_two = len(self.map.marks.selected) > 1
        compare = words.COMPARE if has_two else words.COMPARE_SHOWN
        self._buttons.set_label(self.compare_button, Label(compare))
        top = None if current is None else branch_top(conversation, current)
        is_answering = self._core.turns.live_in(conversation.conversation_id) is not None
        self.delete_button.setEnabled(top is not None and not is_answering)
        count = 0 if top is None else num_from(conversation, top)
        delete = words.delete_branch(count) if count else words.DELETE
        self._buttons.set_label(self.delete_button, Label(delete))
        self._buttons.fit(self.width() - 2 * Space.L)
        if pair is None:
            self.compare_button.setToolTip(words.SAME_BRANCH)
        if not self.delete_button.isEnabled():
            self.delete_button.setToolTip(words.ANSWER_RUNNING if is_answering else words.IN_ALL)

    def _fit_text(self) -> None:
        """Make the window larger with the text, as far as the screen has room."""
        size = QSize(Size.COMPARE_WIDTH, Size.MODELS_HEIGHT) * max(1.0, self._theme.zoom)
        self.resize(within_screen(self, size))
        keep_on_screen(self)

    # Actions

    def _go_to(self, node_id: str) -> None:
        """Show the branch of a message in the chat, and scroll to the message."""
        chat, node = self._conversation.conversation_id, NodeId(node_id)
        if is_in_tree(self._conversation, node):
            self._core.chat.show_branch(chat, node)
            self._pane.show_message(chat, node)
            self.note_place()

    def _go_to_current(self) -> None:
        if self.map.current is not None:
            self._go_to(self.map.current)

    def _prune(self) -> None:
        if self.map.current is not None and self.delete_button.isEnabled():
            self._core.chat.prune(self._conversation.conversation_id, self.map.current)

    def _pair(self) -> Pair | None:
        """Return the branches to compare: the selected ones, or that on show and another one."""
        conversation, selected = self.map.branches.conversation, list(self.map.marks.selected)
        if len(selected) < 2:
            other = selected[0] if selected else self.map.current
            selected = [one for one in (self.map.branches.end_on_show, other) if one is not None]
        if len(selected) < 2:
            return None
        first, second = (branch_of(conversation, one) for one in selected)
        return None if first[-1] is second[-1] else (first, second)

    def _compare(self) -> None:
        pair = self._pair()
        if pair is None:
            return
        if self._compare_window is None:
            window = self.parentWidget()
            assert window is not None
            self._compare_window = CompareWindow(self._theme, window)
        has_two = len(self.map.marks.selected) > 1
        names = (words.FIRST_MARK if has_two else words.BRANCH_ON_SHOW, words.SECOND_MARK)
        self._compare_window.compare(self._conversation, pair, names)

    def _show_menu(self, at: QPoint) -> None:
        menu, current = Menu(self), self.map.current
        selects = current not in self.map.marks.selected
        menu.addAction(words.SHOW).triggered.connect(self._go_to_current)
        toggle = menu.addAction(words.MARK if selects else words.UNMARK)
        toggle.triggered.connect(lambda: self.map.toggle_selected(current))
        menu.addSeparator()
        for button in (self.compare_button, self.delete_button):
            action = menu.addAction(button.text())
            action.setEnabled(button.isEnabled())
            action.triggered.connect(button.click)
        pop_up(menu, at)

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._refresh_buttons()

    @override
    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self.ends_seen.emit([])
