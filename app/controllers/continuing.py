"""The undo of Continue: an answer loses the text that was added to it. Main thread.

An undo stops the answer first if it is still running. A redo puts the added text back, or continues
the answer again if there was none yet.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import QObject

from app.controllers.chat import ChatController
from app.controllers.chat_steps import AnswerRunningError
from app.controllers.desk import Desk
from app.controllers.refusal import Refusal
from app.controllers.turns import Turns
from app.controllers.undo import UndoList
from app.conversation.tree import MessageNode, replace_node
from app.words import undo as words
from engine.types import ConversationId


@dataclass(slots=True, eq=False)
class _Continued:
    """An answer that the user has continued."""

    conversation_id: ConversationId
    before: MessageNode
    after: MessageNode | None = None  # the answer at the last undo; None if nothing was added
    undo: Callable[[], object] | None = None  # its function in the undo list


class UndoContinue(QObject):
    """Adds each continued answer to the undo list.

    The conversation must be in memory when a function of an entry runs; Undoing loads it.
    """

    def __init__(self, desk: Desk, turns: Turns, chat: ChatController, undo: UndoList) -> None:
        super().__init__()
        self._desk = desk
        self._turns = turns
        self._chat = chat
        self._undo = undo
        self._newest: dict[ConversationId, _Continued] = {}
        self._leaving: dict[ConversationId, _Continued] = {}  # answers that are being stopped
        self._again: _Continued | None = None  # answer that a redo continues at present
        chat.continued.connect(self._on_continued)
        chat.refused.connect(self._on_refused)
        turns.activity_changed.connect(self._on_activity_changed)

    def _on_continued(self, conversation_id: ConversationId, before: MessageNode) -> None:
        continued = self._again
        if continued is None:
            continued = _Continued(conversation_id, before)
            continued.undo = self._undo.add(
                words.CONTINUE,
                partial(self._take_back, continued),
                conversation_id,
                redo=partial(self._continue_again, continued),
            )
        self._newest[conversation_id] = continued

    def _on_refused(self, refusal: Refusal) -> None:
        """Remove the undo of an answer that was not continued: it is as it was."""
        continued = self._newest.get(refusal.conversation_id)
        if continued is None or self._node(continued) is not continued.before:
            return
        del self._newest[refusal.conversation_id]
        if continued.undo is not None:
            self._undo.drop(continued.undo)

    def _take_back(self, continued: _Continued) -> bool:
        conversation_id = continued.conversation_id
        if self._is_other_running(continued):
            return False
        self._leaving[conversation_id] = continued
        self._turns.stop(conversation_id)
        self._on_activity_changed(conversation_id)
        return True

    def _on_activity_changed(self, conversation_id: ConversationId) -> None:
        """Replace an answer that is taken back, as soon as it has ended."""
        continued = self._leaving.get(conversation_id)
        if continued is None or self._turns.live_in(conversation_id) is not None:
            return
        del self._leaving[conversation_id]
        node = self._node(continued)
        continued.after = None if node is continued.before else node
        self._replace(continued, continued.before)

    def _continue_again(self, continued: _Continued) -> bool:
        conversation_id = continued.conversation_id
        if conversation_id in self._leaving or self._is_other_running(continued):
            return False
        if continued.after is not None:
            self._replace(continued, continued.after)
            return True
        self._again = continued
        try:
            self._chat.resume(conversation_id, continued.before.node_id)
        finally:
            self._again = None
        return self._node(continued) is not continued.before

    def _is_other_running(self, continued: _Continued) -> bool:
        """Return True, and report it, if another answer is running in the conversation."""
        reply_id = self._turns.reply_in(continued.conversation_id)
        if reply_id in (None, continued.before.node_id):
            return False
        self._chat.failed.emit(AnswerRunningError("").problem)
        return True

    def _replace(self, continued: _Continued, node: MessageNode) -> None:
        """Replace the answer, unless it was deleted."""
        now = self._node(continued)
        if now is not None and now.deleted_at is None and now is not node:
            self._chat.apply(replace_node(self._desk.get(continued.conversation_id), node))

    def _node(self, continued: _Continued) -> MessageNode | None:
        return self._desk.get(continued.conversation_id).nodes.get(continued.before.node_id)
