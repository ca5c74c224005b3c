"""Import of a conversation into the store, in short transactions. Use on the store thread only.

The messages of a long conversation are written in parts, so that other writes wait for one part at
most. Until the last part is written, they belong to a conversation that is marked as deleted in the
year 1970. Nothing shows it, and the next start removes it (ConversationStore.purge), so an import
that was interrupted leaves all or none of each conversation.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from enum import Enum

from app.conversation.filed import FiledConversation
from app.conversation.tree import Conversation, MessageNode
from app.store.conversation_rows import conversation_row
from app.store.conversations import UNFINISHED_AT, ConversationStore
from app.store.errors import MessagesTakenError
from app.words import exchange as words
from engine.types import ConversationId

# Size of a part: about 0.1 s of the store's thread, most of it for the index of the search.
PART_MESSAGES = 100
PART_CHARS = 200_000
_STAGE = "-importing"  # ending of the id under which new messages of a stored conversation wait


class Merged(Enum):
    """The effect of an import of one conversation."""

    ADDED = "added"
    GROWN = "grown"  # messages were added to a stored conversation
    PRESENT = "present"  # everything was stored already


def merge(store: ConversationStore, filed: FiledConversation) -> Merged:
    """Write an imported conversation at once. See Merging.

    Raises:
        MessagesTakenError: see Merging.step.
    """
    merging = Merging(filed)
    while (merged := merging.step(store)) is None:
        pass
    return merged


class Merging:
    """An imported conversation on its way into the store.

    A new conversation gets its place in the list, and its folder is added or restored. A stored
    conversation gets those messages that it lacks. If it is marked as deleted, it is restored. Its
    other values and its place stay.
    """

    def __init__(self, filed: FiledConversation) -> None:
        self._filed = filed
        self.conversation = filed.conversation
        self._id = self.conversation.conversation_id
        self._stage = ConversationId(f"{self._id}{_STAGE}")
        # The conversation that has the new messages until the last part is written.
        self._target = self._id
        self._is_stored = False
        self._new: list[MessageNode] = []  # messages that were not stored before
        # The parts that are not written yet; None before the first step.
        self._left: deque[list[MessageNode]] | None = None

    def step(self, store: ConversationStore) -> Merged | None:
        """Write the next part in a transaction. Return the outcome after the last part.

        Raises:
            MessagesTakenError: a message has the id of a message of another conversation, or of
                another message of this one.
        """
        with store.transaction():
            if self._left is None:
                self._left = self._begin(store)
            if self._left:
                store.tables.write_nodes(self._target, self._left.popleft())
            if self._left:
                return None
            return self._end_grown(store) if self._is_stored else self._end_added(store)

    def _begin(self, store: ConversationStore) -> deque[list[MessageNode]]:
        """Check the conversation, and return its parts that are not stored yet."""
        store.remove_unfinished((self._id, self._stage))
        if store.has_elsewhere(self.conversation.nodes, self._id):
            raise MessagesTakenError(words.TAKEN)
        self._is_stored = store.has(self._id)
        self._new = list(self.conversation.nodes.values())
        if self._is_stored:
            self._new = _missing(store.load(self._id), self.conversation)
        parts = deque(_parts(self._new))
        if self._is_stored and len(parts) > 1:
            self._target = self._stage
        if not self._is_stored or self._target == self._stage:
            row = conversation_row(self.conversation)
            store.tables.insert_row(
                row._replace(conversation_id=self._target, deleted_at=UNFINISHED_AT)
            )
        return parts

    def _end_added(self, store: ConversationStore) -> Merged:
        store.tables.attachments.set_draft(self._id, self.conversation.draft_attachments)
        store.tables.write_shown(self.conversation)
        store.folders.file(self._filed)
        store.set_deleted_at(self._id, self.conversation.deleted_at)
        return Merged.ADDED

    def _end_grown(self, store: ConversationStore) -> Merged:
        if self._target == self._stage and store.has(self._id):
            store.tables.move_messages(self._stage, self._id)
        # If the user has removed the conversation for good meanwhile, its new messages go too.
        store.remove_unfinished((self._stage,))
        store.restore(self._id)
        if not self._new or not store.has(self._id):
            return Merged.PRESENT
        store.tables.show_newest(self._id, [one.parent for one in self._new if not one.deleted_at])
        store.tables.set_updated(self._id, self.conversation.updated_at)
        return Merged.GROWN


def _missing(stored: Conversation, conv: Conversation) -> list[MessageNode]:
    """Return the messages that a stored conversation lacks.

    Raises:
        MessagesTakenError: a message would follow one of the same role.
    """
    new = [node for node in conv.nodes.values() if node.node_id not in stored.nodes]
    roles = {node.node_id: node.role for node in (*stored.nodes.values(), *new)}
    if any(node.parent and roles[node.parent] is node.role for node in new):
        raise MessagesTakenError(words.TAKEN)
    return new


def _parts(nodes: Iterable[MessageNode]) -> Iterator[list[MessageNode]]:
    """Divide messages into parts. Only a message that is too long is a part of more characters."""
    part: list[MessageNode] = []
    num_chars = 0
    for node in nodes:
        files = sum(len(file.text) for file in node.attachments)
        size = len(node.content) + len(node.reasoning) + files
        if part and (len(part) == PART_MESSAGES or num_chars + size > PART_CHARS):
            yield part
            part, num_chars = [], 0
        part.append(node)
        num_chars += size
    if part:
        yield part
