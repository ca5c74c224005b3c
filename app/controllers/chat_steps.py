"""The changes of messages that the user can undo and redo. Main thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QObject, Signal

from app.controllers.desk import Desk
from app.controllers.origin import Origin
from app.controllers.turns import Turns
from app.controllers.undo import UndoList
from app.conversation.deletion import can_delete, delete_message, restore_message
from app.conversation.forks import version_on_show
from app.conversation.replies import empty_versions, is_empty_reply
from app.conversation.tree import (
    Conversation,
    NodeId,
    show_branch,
    show_version,
    shown_path,
)
from app.words import problems as words
from engine.errors import UserFixableError
from engine.types import ConversationId


class AnswerRunningError(UserFixableError):
    """The user tried to restore or delete a message while the conversation has a running answer."""

    title = words.ANSWER_RUNNING
    advice = words.ANSWER_RUNNING_ADVICE


@dataclass(frozen=True, slots=True)
class _NewVersions:
    """The versions of a message that a turn, or several turns at once, have added."""

    node_ids: tuple[NodeId, ...]
    before: NodeId | None = None  # the version that was on show before; None if there was none
    undo: Callable[[], object] | None = (
        None  # their function in the undo list; None: they have none
    )


class ChatSteps(QObject):
    """Adds changes to the undo list. ChatController makes a change first, then notes it here."""

    # argument: ConversationId of a conversation in which a deleted message was restored
    restored = Signal(object)
    failed = Signal(object)  # argument: a Problem

    def __init__(
        self,
        desk: Desk,
        turns: Turns,
        undo: UndoList,
        origin: Origin,
        apply: Callable[[Conversation], None],
    ) -> None:
        super().__init__()
        self._desk = desk
        self._turns = turns
        self._undo = undo
        self._origin = origin
        self._apply = apply
        # The versions that the last turns of a conversation added.
        self._new_versions: dict[ConversationId, _NewVersions] = {}

    def note_version(
        self, name: str, conversation_id: ConversationId, *, before: NodeId, after: NodeId
    ) -> Callable[[], object]:
        """Note that another version of a message is on show. Undo shows the previous version."""
        return self._note_shown(name, conversation_id, before, (after,))

    def _note_shown(
        self, name: str, conversation_id: ConversationId, before: NodeId, after: tuple[NodeId, ...]
    ) -> Callable[[], object]:
        """Add an undo that shows a version. Redo shows the first of `after` that is not deleted."""

        def show(*node_ids: NodeId) -> None:
            self._open(conversation_id, lambda conversation: self._show(conversation, node_ids))

        return self._undo.add(
            name, lambda: show(before), conversation_id, redo=lambda: show(*after)
        )

    def note_turn(
        self,
        name: str,
        conversation_id: ConversationId,
        *,
        before: NodeId,
        after: tuple[NodeId, ...],
    ) -> None:
        """Note turns that added versions of a message. See forget_version().

        Undo shows the version before again, and redo the first of the new ones that is there.
        """
        undo = self._note_shown(name, conversation_id, before, after)
        self._new_versions[conversation_id] = _NewVersions(after, before, undo)

    def note_answers(self, conversation_id: ConversationId, node_ids: tuple[NodeId, ...]) -> None:
        """Note several answers to a new message. UndoSend has the undo of the message."""
        self._new_versions[conversation_id] = _NewVersions(node_ids)

    def requested_with(
        self, conversation_id: ConversationId, reply_id: NodeId
    ) -> tuple[NodeId, ...]:
        """Return the versions that the last turns have added together with a reply, and itself."""
        new = self._new_versions.get(conversation_id)
        return new.node_ids if new is not None and reply_id in new.node_ids else (reply_id,)

    def forget_version(self, conversation_id: ConversationId) -> None:
        """Remove the undo of versions that are gone, because their turn was refused."""
        new = self._new_versions.pop(conversation_id, None)
        nodes = self._desk.get(conversation_id).nodes
        if new is not None and nodes.keys().isdisjoint(new.node_ids):
            self._drop_undo(new)

    def drop_empty_version(self, conversation_id: ConversationId) -> None:
        """Delete versions of a reply that were stopped before their first word, and their undo.

        The version before is on show again, unless the user has chosen another one. If that is
        empty, it and other empty ones, which crashes have left, are deleted instead: the newest one
        has the text, or tells why there is none. Of several answers, those with text stay.
        """
        new = self._new_versions.get(conversation_id)
        if new is None or self._turns.live_in(conversation_id) is not None:
            return

        def drop(conversation: Conversation) -> None:
            gone, kept = _to_drop(conversation, new)
            if not gone:
                return
            shown = version_on_show(conversation, conversation.nodes[kept].parent)
            left = conversation
            for one in gone:
                left = delete_message(left, one, now=self._origin.now())
            self._apply(show_version(left, kept if shown in gone or shown is None else shown))
            if kept not in new.node_ids or new.before in gone:
                self._drop_undo(new)
            if self._new_versions.get(conversation_id) is new:
                del self._new_versions[conversation_id]

        self._open(conversation_id, drop)

    def _drop_undo(self, new: _NewVersions) -> None:
        if new.undo is not None:
            self._undo.drop(new.undo, drops_redo=True)

    def note_deletion(
        self, before: Conversation, node_id: NodeId, name: str
    ) -> Callable[[], object]:
        """Note that a message was deleted. Undo restores it, unless an answer is running.

        before: the conversation before the deletion. If the message was the version on show there,
            undo shows it again.
        """
        conversation_id = before.conversation_id
        was_shown = version_on_show(before, before.nodes[node_id].parent) == node_id

        def restore(conversation: Conversation) -> None:
            self._apply(restore_message(conversation, node_id, is_shown=was_shown))
            self.restored.emit(conversation_id)

        def delete(conversation: Conversation) -> None:
            if conversation.nodes[node_id].deleted_at is None and can_delete(conversation, node_id):
                now = self._origin.now()
                self._apply(delete_message(conversation, node_id, now=now))

        return self._undo.add(
            name,
            lambda: self._open_unless_running(conversation_id, restore, words.MESSAGES_COME_BACK),
            conversation_id,
            redo=lambda: self._open_unless_running(conversation_id, delete, words.MESSAGES_DELETED),
        )

    def _show(self, conversation: Conversation, node_ids: tuple[NodeId, ...]) -> None:
        """Show the first of some versions that was not deleted, unless it is on show."""
        found = (conversation.nodes.get(node_id) for node_id in node_ids)
        node = next((one for one in found if one is not None and one.deleted_at is None), None)
        if node is not None and node not in shown_path(conversation):
            self._apply(show_branch(conversation, node.node_id))

    def _open_unless_running(
        self, conversation_id: ConversationId, act: Callable[[Conversation], None], cause: str
    ) -> bool:
        """Act on a conversation. Report `cause` and return False if it has a running answer."""
        if self._turns.live_in(conversation_id) is not None:
            self.failed.emit(AnswerRunningError(cause).problem)
            return False
        self._open(conversation_id, act)
        return True

    def _open(self, conversation_id: ConversationId, act: Callable[[Conversation], None]) -> None:
        """Act on a conversation. Load it if necessary."""
        self._desk.open(conversation_id, act, self.failed.emit)


def _to_drop(conversation: Conversation, new: _NewVersions) -> tuple[list[NodeId], NodeId]:
    """Return the empty versions to delete, and the version to show in place of one of them.

    No version is to be deleted if the new ones, or the version before them, were deleted.
    """
    nodes = conversation.nodes
    there = [one for one in new.node_ids if one in nodes and nodes[one].deleted_at is None]
    before = None if new.before is None else nodes[new.before]
    if not there or (before is not None and before.deleted_at is not None):
        return [], new.node_ids[0]
    empty = [one for one in there if is_empty_reply(nodes[one])]
    kept = next((one for one in there if one not in empty), there[0])
    if (
        before is not None
        and is_empty_reply(before)
        and before.node_id not in conversation.children
    ):
        return empty_versions(conversation, nodes[kept]), kept
    if kept in empty and before is not None:
        return empty, before.node_id
    return [one for one in empty if one != kept], kept
