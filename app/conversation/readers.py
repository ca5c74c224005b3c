"""The models that have read each message of a branch.

A model has read a message if it wrote a reply below the message, on any branch. A message without
a reader is new to the app: the user has just typed, changed or imported it, or every answer to it
was stopped before the first token. The engine reports whether tokens are read again from this.
"""

from __future__ import annotations

from collections.abc import Iterable

from app.conversation.replies import has_text
from app.conversation.tree import Conversation, MessageNode, MessageStatus, NodeId
from engine.types import Role

UNKNOWN_MODEL = ""  # path of the model that wrote a reply, if only the reply's token ids are known


def readers_of(conv: Conversation, path: Iterable[MessageNode]) -> list[frozenset[str]]:
    """Return the paths of the models that have read each message of a branch.

    path: the messages of the branch, from the first one.
    """
    writers: dict[NodeId | None, set[str]] = {}
    for node in conv.nodes.values():
        if (model := writer_of(node)) is not None:
            writers.setdefault(node.parent, set()).add(model)
    readers: list[frozenset[str]] = []
    below: frozenset[str] = frozenset()
    for node in reversed(tuple(path)):
        own = writer_of(node)
        below |= writers.get(node.node_id, set[str]())
        below |= set[str]() if own is None else {own}
        readers.append(below)
    return readers[::-1]


def writer_of(node: MessageNode) -> str | None:
    """Return the path of the model that wrote a reply, or UNKNOWN_MODEL.

    None if no model of this data folder wrote the message, or if the reply ended before its first
    token.
    """
    if node.role is not Role.ASSISTANT or node.status is MessageStatus.STREAMING:
        return None
    generation, tokens = node.generation, node.reply
    # Imported replies may have a generation that names a model. They have no template hash.
    is_own = tokens is not None or (generation is not None and generation.template_hash != "")
    is_own &= generation is None or not generation.was_imported
    if not is_own or not (has_text(node) or node.status is MessageStatus.COMPLETE):
        return None
    return UNKNOWN_MODEL if generation is None else generation.model_path
