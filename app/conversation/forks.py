"""Branches of a conversation: their ends, the place where two part, and the messages of one. Pure.

A branch is a way from the first message to a message without one below it, its end. The branch of a
message leads to it, and then down through the versions that were last on show.
"""

from __future__ import annotations

from collections.abc import Sequence

from app.conversation.tree import Conversation, MessageNode, NodeId, path_to, versions


def version_on_show(conv: Conversation, parent: NodeId | None) -> NodeId | None:
    """Return the version that is on show below a message, or None if no message follows it."""
    below = conv.children.get(parent)
    return None if below is None else conv.shown.get(parent, below[-1])


def is_in_tree(conv: Conversation, node_id: NodeId) -> bool:
    """Return True if neither the message nor one above it is deleted, and it exists."""
    at: NodeId | None = node_id
    while at is not None:
        node = conv.nodes.get(at)
        if node is None or node.deleted_at is not None:
            return False
        at = node.parent
    return True


def branch_of(conv: Conversation, node_id: NodeId) -> tuple[MessageNode, ...]:
    """Return the messages of the branch of a message, from the first to the last."""
    path = list(path_to(conv, node_id))
    while (below := version_on_show(conv, path[-1].node_id)) is not None:
        path.append(conv.nodes[below])
    return tuple(path)


def branch_end(conv: Conversation, node_id: NodeId) -> NodeId:
    """Return the last message of the branch of a message."""
    at = node_id
    while (below := version_on_show(conv, at)) is not None:
        at = below
    return at


def num_shared(first: Sequence[MessageNode], second: Sequence[MessageNode]) -> int:
    """Return the number of messages that two branches have in common."""
    pairs = zip(first, second, strict=False)
    return sum(one.node_id == other.node_id for one, other in pairs)


def branch_top(conv: Conversation, node_id: NodeId) -> NodeId | None:
    """Return the first message that only branches through this message contain.

    Return None if all branches contain the message: then no message belongs to its branches alone.
    """
    at: NodeId | None = node_id
    while at is not None:
        if len(versions(conv, at)) > 1:
            return at
        at = conv.nodes[at].parent
    return None


def num_from(conv: Conversation, node_id: NodeId) -> int:
    """Return the number of messages from this message on, in all branches that contain it."""
    count, open_ids = 0, [node_id]
    while open_ids:
        count += 1
        open_ids.extend(conv.children.get(open_ids.pop(), ()))
    return count
