"""The messages of a branch in the form that the engine gets. Pure functions, as in tree.py."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from app.conversation.attachments import PromptText, join_prompts, prompt_text
from app.conversation.readers import readers_of, writer_of
from app.conversation.replies import has_text
from app.conversation.text import message_text
from app.conversation.tree import (
    Conversation,
    MessageNode,
    MessageStatus,
    NodeId,
    path_to,
    shown_path,
)
from engine.types import Message, Role

_NOBODY: Final = frozenset[str]()


@dataclass(frozen=True, slots=True)
class PromptedMessage:
    """A message in the form that the model gets, and the models that have read it."""

    message: Message
    readers: frozenset[str]


def prompt_with_readers(conv: Conversation, path: Sequence[MessageNode]) -> list[PromptedMessage]:
    """Return the messages of a branch, with their readers."""
    return _prompted(conv, path, readers_of(conv, path), _readers_of_system(conv))


def messages_ahead(conv: Conversation, draft: str = "") -> tuple[Message, ...]:
    """Return the messages at the start of the next prompt: those on show, and the draft if any.

    The window passes them to the engine to read ahead (controllers/requests.py). The system prompt
    comes first, even if there is no message and no draft. The attachments of the draft count as a
    draft, and so do the documents of the folder, which the first message will have.
    """
    prompted = _without_readers(conv, shown_path(conv))
    files = (*conv.documents, *conv.draft_attachments)
    if draft.strip() or files:
        _add_user(prompted, prompt_text(files, message_text(draft)), _NOBODY)
    return tuple(one.message for one in prompted)


def messages_edited(conv: Conversation, node_id: NodeId, text: str) -> tuple[Message, ...]:
    """Return the messages up to an edited one, as plan_edit() or rewrite_reply() would make them.

    The text must not be blank.
    """
    before = conv.nodes[node_id]
    edited = replace(before, content=message_text(text), reply=None)
    above = () if before.parent is None else path_to(conv, before.parent)
    return tuple(one.message for one in _without_readers(conv, (*above, edited)))


def prompt_nodes(conv: Conversation, reply_id: NodeId) -> tuple[NodeId, ...]:
    """Return the nodes of the messages that the prompt of a reply had, and the reply.

    Item n - 1 is the message that the engine's reasons call message n. Of joined user messages it
    is the first.
    """
    nodes: list[MessageNode] = []
    for node in path_to(conv, reply_id):
        if node.role is Role.USER:
            is_prompted = not nodes or nodes[-1].role is not Role.USER
        else:
            is_prompted = node.node_id == reply_id or _holds_something(node)
        if is_prompted:
            nodes.append(node)
    return tuple(node.node_id for node in nodes)


def _without_readers(conv: Conversation, path: Sequence[MessageNode]) -> list[PromptedMessage]:
    """Return the messages of a branch without their readers, which takes half the time."""
    return _prompted(conv, path, [_NOBODY] * len(path), _NOBODY)


def _prompted(
    conv: Conversation,
    path: Sequence[MessageNode],
    readers_of_path: Sequence[frozenset[str]],
    readers_of_system: frozenset[str],
) -> list[PromptedMessage]:
    """Return the messages of a branch in the form that the model gets.

    A reply without content, which failed or was stopped at once, is left out. The user messages
    before and after such a reply are joined, because many chat templates refuse two user messages
    in a row.
    """
    prompted: list[PromptedMessage] = []
    if conv.system_prompt.strip():
        system = Message(role=Role.SYSTEM, content=conv.system_prompt)
        prompted.append(PromptedMessage(system, readers_of_system))
    for node, readers in zip(path, readers_of_path, strict=True):
        if node.role is Role.ASSISTANT:
            assert node.status is not MessageStatus.STREAMING, "the previous reply must have ended"
            if _holds_something(node):
                prompted.append(PromptedMessage(_reply_message(node), readers))
        else:
            _add_user(prompted, prompt_text(node.attachments, node.content), readers)
    return prompted


def _readers_of_system(conv: Conversation) -> frozenset[str]:
    """Return the models that have read the system prompt: none if it has changed since."""
    if conv.system_prompt != conv.read_system_prompt:
        return frozenset()
    writers = map(writer_of, conv.nodes.values())
    return frozenset(one for one in writers if one is not None)


def _add_user(prompted: list[PromptedMessage], text: PromptText, readers: frozenset[str]) -> None:
    if prompted and prompted[-1].message.role is Role.USER:
        earlier = prompted.pop()
        message, readers = earlier.message, earlier.readers & readers
        before = PromptText(message.content, message.part_ends, message.pictures)
        text = join_prompts(before, text)
    message = Message(
        role=Role.USER, content=text.content, part_ends=text.part_ends, pictures=text.pictures
    )
    prompted.append(PromptedMessage(message, readers))


def _reply_message(node: MessageNode) -> Message:
    return Message(
        role=Role.ASSISTANT,
        content=node.content,
        reasoning=node.reasoning,
        reply=node.reply,  # with token ids, the engine need not tokenize the text again
    )


def _holds_something(reply: MessageNode) -> bool:
    # A complete reply stays in the prompt even if it is empty, because it is part of the engine's
    # cached state.
    return reply.status is MessageStatus.COMPLETE or has_text(reply)
