"""The files of drafts in memory, and the undo of their changes. Main thread."""

from __future__ import annotations

from collections.abc import Callable

from app.controllers.chat import ChatController
from app.controllers.desk import Desk
from app.controllers.undo import UndoList
from app.conversation.attachments import Files
from app.conversation.tree import Conversation, set_draft_attachments
from engine.types import ConversationId

Revert = Callable[[Files], Files]


class DraftFiles:
    """Replaces the files of drafts, and adds the changes to the undo list."""

    def __init__(self, desk: Desk, chat: ChatController, undo: UndoList) -> None:
        self._desk = desk
        self._chat = chat
        self._undo = undo

    def set(
        self,
        conversation_id: ConversationId,
        files: Files,
        *,
        revert: Revert | None = None,
        name: str = "",
    ) -> None:
        """Replace the files of a draft.

        Args:
            conversation_id: a conversation in memory.
            files: the new files.
            revert: function that gets the files of the draft at the time of the undo, and returns
                them without this change. None if the user cannot undo it.
            name: name of the change for the command Undo.
        """
        if revert is not None:
            self._note(name, conversation_id, revert)
        self._apply(self._desk.get(conversation_id), files)

    def _note(self, name: str, conversation_id: ConversationId, revert: Revert) -> None:
        """Add a change to the undo list. Redo keeps the files that were added since the undo."""
        before: Files = ()
        reverted: Files = ()

        def put_back(conversation: Conversation) -> None:
            nonlocal before, reverted
            before = conversation.draft_attachments
            reverted = revert(before)
            self._apply(conversation, reverted)

        def put_again(conversation: Conversation) -> None:
            known = (*before, *reverted)
            newer = (one for one in conversation.draft_attachments if one not in known)
            self._apply(conversation, (*before, *newer))

        def act(change: Callable[[Conversation], None]) -> None:
            self._desk.open(conversation_id, change, self._chat.failed.emit)

        self._undo.add(name, lambda: act(put_back), conversation_id, redo=lambda: act(put_again))

    def _apply(self, conversation: Conversation, files: Files) -> None:
        self._chat.apply(set_draft_attachments(conversation, files))
