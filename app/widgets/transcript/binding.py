"""The connection between the transcript view, the stored conversations and the chat controller."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QGuiApplication

from app.controllers.core import Core
from app.conversation.tree import NodeId
from app.viewmodels.items import TranscriptItems, column_item, with_folder, with_quotes
from app.viewmodels.phases import Planned
from app.viewmodels.transcript import ItemStatus, ScrollPosition, TranscriptItem
from app.widgets.transcript.draft_edits import DraftEdits
from app.widgets.transcript.editor.editor import TypedEdit
from app.widgets.transcript.rows.row import RowAction
from app.widgets.transcript.view import TranscriptView
from engine.types import Channel, ConversationId, Role


class TranscriptBinding(QObject):
    """Updates the view when the conversation changes, and handles the requests of the view.

    A request, for instance a click on Edit or Delete, goes to the chat controller. An update
    compares the new items with the shown items, and calls the view only if items differ.
    """

    stop_requested = Signal()  # a click on the Stop button of the answer
    # arguments: ConversationId, function that opens the editor with the cancelled text again, and
    # returns False if that is not possible now
    edit_dropped = Signal(object, object)
    # arguments: ConversationId, NodeId of the message down to which it is copied
    fork_requested = Signal(object, object)
    # arguments: ConversationId, NodeId of an answer; the user asks why its prompt was read
    why_requested = Signal(object, object)
    side_by_side_requested = Signal(object)  # argument: NodeId of an answer with several versions
    storage_requested = Signal()  # a click on the link to the settings of room for chats

    def __init__(self, view: TranscriptView, core: Core) -> None:
        super().__init__(view)
        self._view = view
        self._desk, self._turns, self._chat = core.desk, core.turns, core.chat
        self._library = core.library
        self._quotes = core.quotes
        self._edited_files = core.edited_files
        self._shown: ConversationId | None = None
        self._items_of = TranscriptItems().of
        self._items: dict[str, TranscriptItem] = {}
        self._editing: NodeId | None = None
        self.edits = DraftEdits(view.editor_host, core.desk, core.library.listed)
        # Scroll positions at which the conversations were left. None: the end.
        self._positions: dict[ConversationId, ScrollPosition | None] = {}
        self._located: ConversationId | None = None  # the conversation to open at a found message
        self._connect()

    @property
    def items(self) -> tuple[TranscriptItem, ...]:
        return tuple(self._items.values())

    def answer_item(self, reply_id: NodeId) -> TranscriptItem | None:
        """Return an answer of the shown conversation, on show or not; None if it is gone."""
        item = self._items.get(reply_id)
        conversation = None if self._shown is None else self._desk.get(self._shown)
        if item is not None or conversation is None or reply_id not in conversation.nodes:
            return item
        if conversation.nodes[reply_id].deleted_at is not None:
            return None
        return column_item(conversation, reply_id, self._turns.live.get(reply_id))

    @property
    def has_messages(self) -> bool:
        return bool(self._items)

    @property
    def can_continue(self) -> bool:
        """True if the last answer was cut off and can be continued."""
        return bool(self._items) and self.items[-1].can_continue

    def has_neighbour(self, step: int) -> bool:
        """Return True if the user can switch to an earlier or later version of a message.

        The message is the last one with several versions. Pass -1 to test for an earlier version, 1
        for a later version.
        """
        fork = self._last_fork
        return fork is not None and 1 <= fork.version.number + step <= fork.version.count

    @property
    def is_editing(self) -> bool:
        """True while the user edits a message."""
        return self._editing is not None

    @property
    def position(self) -> ScrollPosition | None:
        """Scroll position of the shown conversation, or None for its end."""
        return self._view.scroll_position()

    def leave_at(self, conversation_id: ConversationId, position: ScrollPosition) -> None:
        """Store the scroll position at which the conversation opens the next time."""
        self._positions[conversation_id] = position

    def show(self, conversation_id: ConversationId) -> None:
        """Show another conversation: at a new answer, its stored scroll position, or the end."""
        if self._shown is not None:
            self._positions[self._shown] = self._view.scroll_position()
            self.edits.save()
        self._editing = self.edits.show(conversation_id)
        self._shown = conversation_id
        items = self._true_items(conversation_id)
        self._items = {item.key: item for item in items}
        position = self._place_to_open(conversation_id, items)
        self._view.show_conversation(items, position, name=conversation_id)
        self._begin_streaming(items)

    def _place_to_open(
        self, conversation_id: ConversationId, items: tuple[TranscriptItem, ...]
    ) -> ScrollPosition | None:
        """Return the beginning of an unseen answer, or else where the conversation was left."""
        left = self._positions.get(conversation_id)
        is_located, self._located = conversation_id == self._located, None
        if is_located or not self._library.unseen.was_opened_unseen or not items:
            return left
        key = items[-1].key
        # A position inside the answer stays: the user had begun to read it.
        return left if left is not None and left.key == key else ScrollPosition(key, 0)

    def show_message(self, conversation_id: ConversationId, node_id: NodeId) -> None:
        """Scroll to a message: now, or when its conversation is shown."""
        self.leave_at(conversation_id, ScrollPosition(node_id, 0))
        self._located = conversation_id
        if conversation_id == self._shown:
            self._shown = None  # do not store the present position
            self.show(conversation_id)

    def refresh(self, conversation_id: ConversationId) -> None:
        """Update the view if `conversation_id` is the conversation that is shown."""
        if conversation_id != self._shown:
            return
        before = self._items
        items = self._true_items(conversation_id)
        self._items = {item.key: item for item in items}
        if self._editing not in self._items:
            self._editing = None  # the edited message was deleted
        if list(before) != list(self._items):
            self._view.set_items(items)
            self._begin_streaming(items)
            return
        for item in items:
            if item != before[item.key]:
                self._update(before[item.key], item)

    def edit_last(self) -> None:
        """Open the editor for the user's last message."""
        if (last := self._last(Role.USER)) is not None:
            self._edit(last.key)

    def edit_again(self, conversation_id: ConversationId, node_id: NodeId, text: str) -> None:
        """Open the editor of a message with a text: now, or when its conversation is shown."""
        self.edits.put_back(conversation_id, node_id, text)
        if conversation_id == self._shown:
            self._edit(node_id)

    def end_editing(self) -> None:
        """Close the editor without changing the message."""
        self._view.editor_host.cancel()

    @property
    def last_answer(self) -> NodeId | None:
        """The last answer on show; None if there is none."""
        last = self._last(Role.ASSISTANT)
        return None if last is None else NodeId(last.key)

    def regenerate_last(self, answers: int = 1) -> None:
        """Request another version of the last answer, or several versions at once."""
        if (last := self._last(Role.ASSISTANT)) is not None:
            self._regenerate(last.key, answers)

    @property
    def can_delete(self) -> bool:
        """True if the user's last message can be deleted."""
        last = self._last(Role.USER)
        return last is not None and last.can_delete

    def copy_last(self) -> None:
        """Copy the last answer to the clipboard."""
        if (last := self._last(Role.ASSISTANT)) is not None:
            QGuiApplication.clipboard().setText(self._view.text_of(last.key))

    @property
    def can_explain(self) -> bool:
        """True if the origin of an answer's prompt is known."""
        return any(isinstance(item.phase, Planned) for item in self.items)

    def explain_reading(self) -> None:
        """Explain what was read for the answer with the keyboard focus, else for the last one."""
        items = self.items
        focused = self._view.focused_message
        # The state line of an answer stands in the row of the question before it.
        keys = [] if focused is None else [item.key for item in items[focused : focused + 2]]
        explained = [item.key for item in items if isinstance(item.phase, Planned)]
        for key in (*keys, *explained[-1:]):
            if key in explained:
                self._explain(key)
                return

    def delete_last(self) -> None:
        """Delete the user's last message with its answer."""
        if (last := self._last(Role.USER)) is not None:
            self._delete(last.key)

    def continue_last(self) -> None:
        if self.can_continue:
            self._continue(self.items[-1].key)

    def show_last_neighbour(self, step: int) -> None:
        """Show the previous (-1) or next (1) version of the last message with several versions."""
        if (fork := self._last_fork) is not None:
            self._show_neighbour(fork.key, step)

    @property
    def last_versions(self) -> str | None:
        """Key of the answer with the focus, else of the last one, with several versions."""
        items, focused = self.items, self._view.focused_message
        near = () if focused is None else items[focused : focused + 1]
        found = (
            item.key
            for item in (*near, *reversed(items))
            if item.role is Role.ASSISTANT and item.version.count > 1
        )
        return next(found, None)

    @property
    def _last_fork(self) -> TranscriptItem | None:
        return next((item for item in reversed(self.items) if item.version.count > 1), None)

    def _last(self, role: Role) -> TranscriptItem | None:
        """Return the last message with the given role, or None."""
        return next((item for item in reversed(self.items) if item.role is role), None)

    def _connect(self) -> None:
        view = self._view
        view.click_actions.requested.connect(self._on_requested)
        view.editor_host.submitted.connect(self._submit_edit)
        view.editor_host.cancelled.connect(self._close_editor)
        view.editor_host.dropped.connect(self._on_edit_dropped)
        self._desk.changed.connect(self.refresh)
        self._quotes.changed.connect(self.refresh)
        self._turns.text_arrived.connect(self._on_text_arrived)
        self._turns.line_changed.connect(self._on_line_changed)

    def _true_items(self, conversation_id: ConversationId) -> tuple[TranscriptItem, ...]:
        conversation = self._desk.get(conversation_id)
        items = self._items_of(conversation, self._turns.live, self._editing)
        folder = self._library.folder_of(conversation_id)
        quotes = self._quotes.of(conversation)
        if folder is not None:
            items = tuple(with_folder(item, folder) for item in items)
        if not any(quotes.values()):
            return items
        return tuple(with_quotes(item, quotes.get(NodeId(item.key), ())) for item in items)

    def _begin_streaming(self, items: tuple[TranscriptItem, ...]) -> None:
        for item in items:
            if item.status is ItemStatus.STREAMING:
                self._view.begin_answer(item)

    def _update(self, before: TranscriptItem, item: TranscriptItem) -> None:
        ended = before.status is ItemStatus.STREAMING and item.status is not ItemStatus.STREAMING
        if ended:
            self._view.finish(item)
        else:
            self._view.update_item(item)

    def _on_text_arrived(self, node_id: NodeId, channel: Channel, text: str) -> None:
        if node_id in self._items:
            self._view.append_delta(node_id, channel, text)

    def _on_line_changed(self, node_id: NodeId) -> None:
        if node_id in self._items and self._shown is not None:
            self.refresh(self._shown)

    def _on_requested(self, key: str, action: RowAction) -> None:
        match action:
            case RowAction.EDIT | RowAction.EDIT_ANSWER:
                self._edit(key)
            case RowAction.FORK:
                self._fork(key)
            case RowAction.REGENERATE | RowAction.RETRY:
                self._regenerate(key)
            case RowAction.CONTINUE:
                self._continue(key)
            case RowAction.STOP:
                self.stop_requested.emit()
            case RowAction.WHY_READ:
                self._explain(key)
            case RowAction.CHAT_STORAGE:
                self.storage_requested.emit()
            case RowAction.DELETE:
                self._delete(key)
            case RowAction.PREVIOUS_VERSION | RowAction.NEXT_VERSION | RowAction.SIDE_BY_SIDE:
                self._show_versions(key, action)
            case _:
                raise ValueError(action)

    def _edit(self, key: str) -> None:
        if self._shown is None or self._turns.live_in(self._shown) is not None:
            return
        self._close_editor(self._editing)
        self._editing = NodeId(key)
        self.edits.note_opened(self._shown, key)
        self.refresh(self._shown)

    def _submit_edit(self, key: str, text: str) -> None:
        if self._shown is None:
            return
        editing, self._editing = self._editing, None
        chat, node_id = self._shown, NodeId(key)
        if self._items[key].role is Role.ASSISTANT:
            is_accepted = self._chat.rewrite(chat, node_id, text)
        else:
            files = self._edited_files.changed_files(node_id)
            is_accepted = self._chat.edit(chat, node_id, text, files)
        if is_accepted:
            self._edited_files.take(node_id)
        else:
            self._editing = editing  # keep the editor open

    def _close_editor(self, key: str | None) -> None:
        if key is not None and key == self._editing and self._shown is not None:
            self._editing = None
            self.refresh(self._shown)

    def _on_edit_dropped(self, key: str, typed: TypedEdit) -> None:
        shown, files = self._shown, self._edited_files.take(NodeId(key))

        def open_again() -> bool:
            if shown is None or shown != self._shown or key not in self._items:
                return False
            if self._turns.live_in(shown) is not None:
                return False
            self._view.editor_host.restore(key, typed)
            if files is not None:
                self._edited_files.set(shown, NodeId(key), files)
            self._edit(key)
            return True

        self.edit_dropped.emit(shown, open_again)

    def _regenerate(self, key: str, answers: int = 1) -> None:
        if self._shown is not None:
            self._chat.regenerate(self._shown, NodeId(key), answers=answers)

    def _fork(self, key: str) -> None:
        if self._shown is not None and self._items[key].status is not ItemStatus.STREAMING:
            self.fork_requested.emit(self._shown, NodeId(key))

    def _continue(self, key: str) -> None:
        if self._shown is not None:
            self._chat.resume(self._shown, NodeId(key))

    def _explain(self, key: str) -> None:
        """Ask for the explanation of an answer. The key may be the one of its question."""
        keys = list(self._items)
        is_question = self._items[key].role is Role.USER
        answer = keys[keys.index(key) + 1] if is_question else key
        self.why_requested.emit(self._shown, NodeId(answer))

    def _delete(self, key: str) -> None:
        if self._shown is not None:
            self._chat.delete(self._shown, NodeId(key))

    def _show_versions(self, key: str, action: RowAction) -> None:
        if action is RowAction.SIDE_BY_SIDE:
            self.side_by_side_requested.emit(key)
        else:
            self._show_neighbour(key, 1 if action is RowAction.NEXT_VERSION else -1)

    def _show_neighbour(self, key: str, step: int) -> None:
        if self._shown is not None:
            self._chat.show_neighbour(self._shown, NodeId(key), step)
