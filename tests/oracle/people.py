"""The conversations of users, changed by the app's own conversation code.

Each action returns the `Turn` that the app's window would submit to the engine.
"""

from __future__ import annotations

from app.conversation.actions import (
    Turn,
    TurnIds,
    plan_continue,
    plan_edit,
    plan_regenerate,
    plan_send,
)
from app.conversation.replies import can_continue, fail_reply, finish_reply
from app.conversation.tree import (
    Conversation,
    MessageNode,
    NodeId,
    new_conversation,
    set_system_prompt,
    show_version,
    shown_path,
    versions,
)
from engine.events import RequestFailed, RequestFinished
from engine.types import Channel, ConversationId, Message, Role
from tests.oracle.flight import Flight


class People:
    """The newest value of every conversation, by name.

    An action that takes `nth` counts the shown messages from 0 and wraps around at their end.
    """

    def __init__(self) -> None:
        self.chats: dict[str, Conversation] = {}
        self._num_ids = 0

    def chat(self, name: str) -> Conversation:
        return self.chats.get(name) or new_conversation(ConversationId(name), now=0.0)

    def shown(self, chat: str, role: Role) -> list[MessageNode]:
        return [node for node in shown_path(self.chat(chat)) if node.role is role]

    def send(self, chat: str, text: str) -> Turn:
        return self._begin(plan_send(self.chat(chat), text, self._ids(), now=0.0))

    def edit(self, chat: str, nth: int, text: str) -> Turn:
        """Edit a shown message of the user, or send the text if there is no message yet."""
        nodes = self.shown(chat, Role.USER)
        if not nodes:
            return self.send(chat, text)
        node_id = nodes[nth % len(nodes)].node_id
        return self._begin(plan_edit(self.chat(chat), node_id, text, self._ids(), now=0.0))

    def regenerate(self, chat: str, nth: int) -> Turn | None:
        nodes = self.shown(chat, Role.ASSISTANT)
        if not nodes:
            return None
        node_id = nodes[nth % len(nodes)].node_id
        return self._begin(plan_regenerate(self.chat(chat), node_id, self._ids().reply, now=0.0))

    def resume(self, chat: str) -> Turn | None:
        """Continue the last reply if it was cut off, else return None."""
        nodes = self.shown(chat, Role.ASSISTANT)
        if not nodes or not can_continue(self.chat(chat), nodes[-1].node_id):
            return None
        return self._begin(plan_continue(self.chat(chat), nodes[-1].node_id, now=0.0))

    def switch(self, chat: str, nth: int, version: int) -> None:
        path = shown_path(self.chat(chat))
        if path:
            siblings = versions(self.chat(chat), path[nth % len(path)].node_id)
            shown = siblings[version % len(siblings)]
            self.chats[chat] = show_version(self.chat(chat), shown)

    def set_system(self, chat: str, text: str) -> None:
        self.chats[chat] = set_system_prompt(self.chat(chat), text)

    def upcoming(self, chat: str, draft: str) -> tuple[Message, ...]:
        """Return the messages of the next turn: those shown, and the draft if there is one."""
        turn = plan_send(self.chat(chat), draft or "x", self._ids(), now=0.0)
        return turn.messages if draft else turn.messages[:-1]

    def finish(self, flight: Flight, finished: RequestFinished) -> None:
        if flight.turn is not None:
            conv = self.chats[flight.chat]
            self.chats[flight.chat] = finish_reply(conv, flight.turn.reply_id, finished)

    def fail(self, flight: Flight, failed: RequestFailed) -> None:
        if flight.turn is not None:
            self.chats[flight.chat] = fail_reply(
                self.chats[flight.chat],
                flight.turn.reply_id,
                failed.problem,
                content=flight.streamed[Channel.ANSWER],
                reasoning=flight.streamed[Channel.REASONING],
            )

    def _begin(self, turn: Turn) -> Turn:
        self.chats[str(turn.conversation.conversation_id)] = turn.conversation
        return turn

    def _ids(self) -> TurnIds:
        self._num_ids += 1
        return TurnIds(user=NodeId(f"{self._num_ids}u"), reply=NodeId(f"{self._num_ids}r"))
