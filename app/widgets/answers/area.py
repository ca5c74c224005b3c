"""The place of the transcript in the chat pane, which several answers can cover. Main thread."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QStackedWidget, QWidget

from app.controllers.core import Core
from app.conversation.text import one_line
from app.conversation.tree import Conversation, NodeId, first_title, versions
from app.theme.palette import Theme
from app.viewmodels.answers import answers_to, column_items
from app.widgets.answers.column import AnswerColumn
from app.widgets.answers.pane import AnswersPane
from app.widgets.transcript.rows.row import RowAction
from app.widgets.transcript.view import TranscriptView
from app.words import answers as words
from engine.types import Channel, ConversationId

_QUESTION_LEN = 200  # characters of the question; most windows show fewer


class ReadingArea(QStackedWidget):
    """The transcript, or the answers of the shown chat side by side.

    The answers are on show from the beginning of a set of answers, or from the user's command,
    until the user closes them or uses one, or another turn begins. A chat that the user leaves
    shows them again when it returns. The pane is created for the first set.
    """

    changed = Signal()  # the answers were opened or closed, or another one is in focus
    # emitted when the answers are closed while they have the focus; the receiver focuses another
    # widget
    left = Signal()
    opened = Signal()  # the answers cover the transcript now
    filled = Signal()  # a column was created
    # arguments: number of the version that the user chose, function that takes the choice back
    used = Signal(int, object)
    # arguments: ConversationId, NodeId of an answer; the user asks why its prompt was read
    why_requested = Signal(object, object)
    noted = Signal(str)  # argument: the note in the tooltip of the Send button; empty for none

    def __init__(self, theme: Theme, core: Core, parent: QWidget) -> None:
        """Make the area. Call add_transcript() once before anything is shown."""
        super().__init__(parent)
        self._theme = theme
        self._core = core
        # Chats that show answers side by side, and the message that the answers are to
        self._questions: dict[ConversationId, NodeId] = {}
        self._known: dict[
            ConversationId, tuple[NodeId, ...]
        ] = {}  # running answers, when last seen
        self.pane: AnswersPane | None = None  # created on first use
        core.desk.changed.connect(self._on_changed)
        core.turns.activity_changed.connect(self._on_activity_changed)
        core.turns.text_arrived.connect(self._on_text_arrived)
        core.turns.line_changed.connect(self._on_line_changed)
        core.chat.asked_again.connect(self._begin)
        core.library.current_changed.connect(self._refresh)
        core.preferences.changed.connect(self._apply_preferences)

    def add_transcript(self, view: TranscriptView) -> None:
        """Add the transcript. Its parent must be the area."""
        self._view = view
        self.addWidget(view)

    @property
    def is_open(self) -> bool:
        """True if answers cover the transcript."""
        return self._core.library.current in self._questions

    @property
    def text_view(self) -> TranscriptView:
        """The view with the text on show: of the answer in focus, else the transcript."""
        column = None if self.pane is None or not self.is_open else self.pane.focused
        return self._view if column is None else column.view

    def show_answers(self, node_id: str) -> None:
        """Show all versions of an answer of the shown chat, with this one in focus."""
        conversation = self._conversation
        question = conversation.nodes[NodeId(node_id)].parent
        assert question is not None
        self._open(conversation.conversation_id, question)
        if self.pane is not None:
            self.pane.focus_answer(NodeId(node_id))

    def close_answers(self) -> bool:
        """Show the transcript again, without a stop. Return False if no answers are on show."""
        if self._questions.pop(self._core.library.current, None) is None:
            return False
        self._refresh()
        return True

    def can_step(self, step: int) -> bool:
        """Return True if there is an answer `step` places after the one in focus."""
        return self.is_open and self.pane is not None and self.pane.can_step(step)

    def step(self, step: int) -> None:
        """Move the focus to the answer `step` places further."""
        if self.pane is not None:
            self.pane.step(step)

    def copy_answer(self) -> bool:
        """Copy the answer in focus to the clipboard. Return False if no answers are on show."""
        column = None if self.pane is None or not self.is_open else self.pane.focused
        if column is None:
            return False
        QGuiApplication.clipboard().setText(column.view.text_of(column.item.key))
        return True

    def use_to_continue(self) -> None:
        """Before a message is sent: use the answer in focus, unless an answer is running."""
        key = self._continued
        if key is not None:
            self._core.chat.pick(self._core.library.current, key)
            self.close_answers()

    @property
    def _conversation(self) -> Conversation:
        return self._core.desk.get(self._core.library.current)

    @property
    def _continued(self) -> NodeId | None:
        """The answer that a message sent now would continue; None without answers on show."""
        column = None if self.pane is None or not self.is_open else self.pane.focused
        is_answering = self._core.turns.live_in(self._core.library.current) is not None
        if column is None or is_answering or not column.item.can_use:
            return None
        return column.item.key

    def _open(self, chat: ConversationId, question: NodeId) -> None:
        self._questions[chat] = question
        if chat == self._core.library.current:
            self._refresh()

    def _on_changed(self, conversation_id: ConversationId) -> None:
        if conversation_id == self._core.library.current and self.is_open:
            self._refresh()

    def _on_activity_changed(self, conversation_id: ConversationId) -> None:
        """Show a set of answers that has begun; close it when another message is answered."""
        running = self._core.turns.replies_in(conversation_id)
        before = self._known.pop(conversation_id, ())
        if running:
            self._known[conversation_id] = running
        added = [one for one in running if one not in before]
        if added and len(running) > 1:
            self._begin(conversation_id, running[0])
        elif added and self._leads_away(conversation_id, added[0]):
            del self._questions[conversation_id]
        if conversation_id == self._core.library.current:
            self._refresh()

    def _begin(self, chat: ConversationId, reply: NodeId) -> None:
        question = self._core.desk.get(chat).nodes[reply].parent
        if question is not None:
            self._open(chat, question)

    def _leads_away(self, chat: ConversationId, reply: NodeId) -> bool:
        """Return True if a new reply answers another message than the answers that are on show."""
        question = self._questions.get(chat)
        return question is not None and self._core.desk.get(chat).nodes[reply].parent != question

    def _refresh(self) -> None:
        """Show the answers of the shown chat, or its transcript."""
        conversation = self._conversation
        question_id = self._questions.get(conversation.conversation_id)
        replies = () if question_id is None else answers_to(conversation, question_id)
        if question_id is None or len(replies) < 2:
            self._questions.pop(conversation.conversation_id, None)
            self._show_transcript()
            return
        pane = self.pane or self._make_pane()
        message = conversation.nodes[question_id]
        question = one_line(message.content, _QUESTION_LEN) or first_title(message)
        # The focus may be in the editor of a message.
        had_focus = self._view.isAncestorOf(self.window().focusWidget() or self)
        items = column_items(conversation, replies, self._core.turns.live)
        was_closed = self.currentWidget() is not pane
        self.setCurrentWidget(pane)  # first, so that the columns have their width
        pane.show_answers(question, items)
        if was_closed:
            self._focus_shown_version(pane, takes_focus=had_focus)
            self.opened.emit()
        self._tell()

    def _focus_shown_version(self, pane: AnswersPane, *, takes_focus: bool) -> None:
        conversation = self._conversation
        keys = [one.item.key for one in pane.columns]
        shown = conversation.shown.get(conversation.nodes[keys[0]].parent, keys[-1])
        pane.focus_answer(shown if shown in keys else keys[0], takes_focus=takes_focus)

    def _show_transcript(self) -> None:
        pane = self.pane
        if pane is None or self.currentWidget() is not pane:
            return
        had_focus = pane.isAncestorOf(self.window().focusWidget() or self)
        self.setCurrentWidget(self._view)
        pane.clear()
        if had_focus:
            self.left.emit()
        self._tell()

    def _tell(self) -> None:
        """Report which answer is in focus."""
        key = self._continued
        number = 0 if key is None else versions(self._conversation, key).index(key) + 1
        self.noted.emit(words.continues(number) if number else "")
        self.changed.emit()

    def _make_pane(self) -> AnswersPane:
        pane = self.pane = AnswersPane(self._theme, self._view, self)
        pane.column_made.connect(self._on_column_made)
        pane.closed.connect(self.close_answers)
        pane.focus_changed.connect(self._tell)
        pane.used.connect(self._use)
        pane.stop_requested.connect(self._stop)
        pane.regenerate_requested.connect(self._regenerate)
        self._apply_preferences()
        self.addWidget(pane)
        return pane

    def _on_column_made(self, column: AnswerColumn) -> None:
        view = column.view
        view.quoted.connect(self._view.quoted)
        view.typed.connect(self._view.typed)
        view.click_actions.requested.connect(self._on_requested)
        view.click_actions.save_requested.connect(self._view.click_actions.save_requested)
        self.filled.emit()

    def _on_requested(self, key: str, action: RowAction) -> None:
        """Carry out an action that a row or a screen reader requests for an answer."""
        if action is RowAction.STOP:
            self._stop(key)
        elif action is RowAction.WHY_READ:
            self.why_requested.emit(self._core.library.current, NodeId(key))
        else:
            self._view.click_actions.requested.emit(key, action)

    def _apply_preferences(self) -> None:
        if self.pane is not None:
            self.pane.set_zoom(self._core.preferences.value.text_zoom / 100)

    def _on_text_arrived(self, node_id: NodeId, channel: Channel, text: str) -> None:
        if self.pane is not None and self.is_open:
            self.pane.append_delta(node_id, channel, text)

    def _on_line_changed(self, node_id: NodeId) -> None:
        if self.is_open and node_id in self._conversation.nodes:
            self._refresh()

    def _stop(self, node_id: str) -> None:
        self._core.chat.stop_reply(NodeId(node_id))

    def _regenerate(self, node_id: str) -> None:
        self._core.chat.regenerate(self._core.library.current, NodeId(node_id))

    def _use(self, node_id: str) -> None:
        """Show the answer that the user chose in the transcript, and stop the others."""
        key, chat, undo = NodeId(node_id), self._core.library.current, self._core.undo
        question, before = self._questions[chat], tuple(undo.entries)
        number = versions(self._conversation, key).index(key) + 1
        self._core.chat.pick(chat, key)
        self.close_answers()
        added = [entry for entry in undo.entries if entry not in before]
        if added:
            self.used.emit(number, partial(self._take_back, added[-1].undo, chat, question))

    def _take_back(
        self, undo: Callable[[], object], chat: ConversationId, question: NodeId
    ) -> None:
        undo()
        if chat == self._core.library.current:
            self._open(chat, question)
