"""Messages that are taken out of a conversation, and brought back. Pure.

A deleted message stays in the tree, so that it can come back; no path leads to it, nor to what is below it.
"""

from __future__ import annotations

from dataclasses import replace

from app.conversation.tree import Conversation, NodeId, replace_node, show_version, versions
from engine.types import Role


def can_delete(conv: Conversation, node_id: NodeId) -> bool:
    """Whether a message can go: a question must keep an answer."""
    return conv.nodes[node_id].role is Role.USER or len(versions(conv, node_id)) > 1


def delete_message(conv: Conversation, node_id: NodeId, *, now: float) -> Conversation:
    """Take out a version of a message and all below it; the version next to it is shown."""
    assert can_delete(conv, node_id)
    node, siblings = conv.nodes[node_id], versions(conv, node_id)
    index = siblings.index(node_id)
    left = (*siblings[:index], *siblings[index + 1 :])
    marked = replace_node(conv, replace(node, deleted_at=now))
    if left:
        neighbour = left[min(index, len(left) - 1)]
        children = {**conv.children, node.parent: left}
        return show_version(replace(marked, children=children), neighbour)
    return replace(
        marked,
        children={parent: ids for parent, ids in conv.children.items() if parent != node.parent},
        shown={parent: shown for parent, shown in conv.shown.items() if parent != node.parent},
    )


def restore_message(conv: Conversation, node_id: NodeId) -> Conversation:
    """Bring a deleted message back and show it, with all below it; nothing if it is there."""
    node = conv.nodes[node_id]
    if node.deleted_at is None:
        return conv
    there = {*conv.children.get(node.parent, ()), node_id}
    siblings = tuple(one for one in conv.nodes if one in there)  # in order of creation
    back = replace_node(conv, replace(node, deleted_at=None))
    return show_version(replace(back, children={**conv.children, node.parent: siblings}), node_id)


def num_below(conv: Conversation, node_id: NodeId) -> int:
    """How many messages go with this one, itself included, in all branches."""
    number, waiting = 0, [node_id]
    while waiting:
        waiting += conv.children.get(waiting.pop(), ())
        number += 1
    return number
