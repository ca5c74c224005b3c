"""Functions that change the text of an answer, or copy a branch into a new conversation. Pure.

Neither requests an answer. A copied branch keeps the token ids of its answers, so that the engine
finds the cached state of the original and reads none of it again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from app.conversation.attachments import own_files
from app.conversation.text import clean_text
from app.conversation.tree import (
    Conversation,
    MessageNode,
    MessageStatus,
    NodeId,
    add_nodes,
    path_to,
)
from app.words import folders as folder_words, window as words
from engine.types import ConversationId, Role


def can_rewrite(conv: Conversation, reply_id: NodeId) -> bool:
    """Return True for an answer that has ended."""
    node = conv.nodes[reply_id]
    return node.role is Role.ASSISTANT and node.status is not MessageStatus.STREAMING


def rewrite_reply(
    conv: Conversation, reply_id: NodeId, text: str, new_id: NodeId, *, now: float
) -> Conversation:
    """Add a version of an answer with the user's text, and show it.

    The version is complete and has no token ids, so the next turn reads its text as it stands. It
    has no model and no usage, because no model generated it. The reasoning is kept.
    """
    assert can_rewrite(conv, reply_id)
    before = conv.nodes[reply_id]
    version = MessageNode(
        node_id=new_id,
        parent=before.parent,
        role=Role.ASSISTANT,
        content=clean_text(text),
        reasoning=before.reasoning,
        created_at=now,
    )
    return replace(add_nodes(conv, version), updated_at=now)


def fork(
    conv: Conversation,
    node_id: NodeId,
    conversation_id: ConversationId,
    new_id: Callable[[], str],
    *,
    now: float,
) -> Conversation:
    """Return a new conversation with copies of the messages from the first one to `node_id`.

    Only the version of each message on that branch is copied. If `node_id` is a user message, the
    copy ends before it and has its text and its own files as the draft. Documents of a folder are
    not among these: a first message gets them when it is sent.
    """
    path = path_to(conv, node_id)
    assert path[-1].status is not MessageStatus.STREAMING, "an answer in progress has no end yet"
    draft, files = "", ()
    if path[-1].role is Role.USER:
        path, draft, files = path[:-1], path[-1].content, own_files(path[-1].attachments)
    copies: list[MessageNode] = []
    for node in path:
        parent = copies[-1].node_id if copies else None
        copies.append(replace(node, node_id=NodeId(new_id()), parent=parent))
    forked = Conversation(
        conversation_id=conversation_id,
        created_at=now,
        updated_at=now,
        title=words.forked_title(conv.title),
        title_is_manual=True,
        system_prompt=conv.system_prompt,
        read_system_prompt=conv.read_system_prompt if copies else None,
        setup=conv.setup,
        chosen_model=conv.chosen_model,
        draft=draft,
        draft_attachments=files,
    )
    return add_nodes(forked, *copies)


def duplicate(
    conv: Conversation, conversation_id: ConversationId, new_id: Callable[[], str], *, now: float
) -> Conversation:
    """Return a copy of a conversation with all versions of its messages, under new ids.

    Deleted messages are left out, and so are the messages below them. An answer that is being
    written is copied as a stopped one.
    """
    ids: dict[NodeId | None, NodeId | None] = {None: None}
    copies: list[MessageNode] = []
    for node in conv.nodes.values():
        if node.deleted_at is not None or node.parent not in ids:
            continue
        copy_id = ids[node.node_id] = NodeId(new_id())
        is_open = node.status is MessageStatus.STREAMING
        status = MessageStatus.STOPPED if is_open else node.status
        copies.append(replace(node, node_id=copy_id, parent=ids[node.parent], status=status))
    copied = replace(
        conv,
        conversation_id=conversation_id,
        created_at=now,
        updated_at=now,
        title=folder_words.copied_title(conv.title),
        title_is_manual=True,
        deleted_at=None,
        draft_edits=(),
        nodes={},
        children={},
        shown={},
    )
    shown = {ids[parent]: ids[node_id] for parent, node_id in conv.shown.items() if parent in ids}
    return replace(add_nodes(copied, *copies), shown=shown)
