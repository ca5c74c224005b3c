"""Functions that delete and restore messages of a conversation. Pure.

A deleted message stays in the tree, with a time in `deleted_at`, so that it can be restored. The
message is removed from its parent's children, so that it and the messages below it are in no
branch.
"""

from __future__ import annotations

from dataclasses import replace

from app.conversation.forks import version_on_show
from app.conversation.tree import (
    Conversation,
    NodeId,
    replace_node,
    show_version,
    shown_path,
    versions,
)
from engine.types import Role

# seconds after which deleted conversations and messages are removed for good
DELETED_KEPT_S = 30 * 24 * 3600


def can_delete(conv: Conversation, node_id: NodeId) -> bool:
    """Return True for a user message, and for a reply that has other versions."""
    return conv.nodes[node_id].role is Role.USER or len(versions(conv, node_id)) > 1


def delete_message(conv: Conversation, node_id: NodeId, *, now: float) -> Conversation:
    """Delete a version of a message and all messages below it.

    If the version was on show, show a neighbouring one.
    """
    assert can_delete(conv, node_id)
    node, siblings = conv.nodes[node_id], versions(conv, node_id)
    before = version_on_show(conv, node.parent)
    index = siblings.index(node_id)
    left = (*siblings[:index], *siblings[index + 1 :])
    marked = replace_node(conv, replace(node, deleted_at=now))
    if left:
        neighbour = left[min(index, len(left) - 1)]
        children = {**conv.children, node.parent: left}
        shown = neighbour if before in (None, node_id) else before
        return show_version(replace(marked, children=children), shown)
    return replace(
        marked,
        children={parent: ids for parent, ids in conv.children.items() if parent != node.parent},
        shown={parent: shown for parent, shown in conv.shown.items() if parent != node.parent},
    )


def restore_message(conv: Conversation, node_id: NodeId, *, is_shown: bool = True) -> Conversation:
    """Restore a deleted message and all messages below it.

    Return the conversation unchanged if the message is not deleted.

    is_shown: True to show the message; False to leave on show what is on show.
    """
    node = conv.nodes[node_id]
    if node.deleted_at is None:
        return conv
    there = {*conv.children.get(node.parent, ()), node_id}
    # `nodes` is in order of creation, so the siblings are too.
    siblings = tuple(one for one in conv.nodes if one in there)
    back = replace_node(conv, replace(node, deleted_at=None))
    shown = None if is_shown else version_on_show(conv, node.parent)
    restored = replace(back, children={**conv.children, node.parent: siblings})
    return show_version(restored, shown or node_id)


def num_shown_from(conv: Conversation, node_id: NodeId) -> int:
    """Return the number of messages on show from this message on. Other versions do not count."""
    shown = [node.node_id for node in shown_path(conv)]
    return len(shown) - shown.index(node_id) if node_id in shown else 1
