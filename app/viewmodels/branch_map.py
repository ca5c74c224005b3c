"""The branch map of a conversation: places, texts, and the ways of keys between messages. No Qt."""

from __future__ import annotations

from functools import cached_property

from app.conversation.forks import branch_end, version_on_show
from app.conversation.text import one_line
from app.conversation.tree import Conversation, MessageStatus, NodeId, shown_path, versions
from app.viewmodels.branch_layout import BranchLayout
from app.words import branches, transcript as words
from engine.types import Role

LABEL_LEN = 120  # characters of a message beside its place
TIP_LEN = 400  # characters of a message in its tooltip
# The beginning of a message that is searched for these characters.
_SEARCHED_LEN = 2_000


class BranchMap:
    """The tree of one conversation. It never changes: a changed conversation gets a new map."""

    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation
        self.layout = BranchLayout(conversation.children)
        self.shown = frozenset(node.node_id for node in shown_path(conversation))
        self._labels: dict[NodeId, str] = {}

    def __contains__(self, node_id: NodeId | None) -> bool:
        return node_id in self.layout.places

    @cached_property
    def ends(self) -> frozenset[NodeId]:
        """The last messages of all branches."""
        children = self.conversation.children
        return frozenset(node for node in self.layout.places if node not in children)

    @cached_property
    def order(self) -> tuple[NodeId, ...]:
        """All messages in the order in which screen readers read them: branch after branch."""
        children, found = self.conversation.children, list[NodeId]()
        open_ids = list(reversed(children.get(None, ())))
        while open_ids:
            found.append(open_ids.pop())
            open_ids.extend(reversed(children.get(found[-1], ())))
        return tuple(found)

    @cached_property
    def end_on_show(self) -> NodeId | None:
        first = version_on_show(self.conversation, None)
        return None if first is None else self.end_of(first)

    def role(self, node_id: NodeId) -> Role:
        return self.conversation.nodes[node_id].role

    def is_being_written(self, node_id: NodeId) -> bool:
        return self.conversation.nodes[node_id].status is MessageStatus.STREAMING

    def label(self, node_id: NodeId) -> str:
        """Return the beginning of a message on one line."""
        label = self._labels.get(node_id)
        if label is None:
            label = self._labels[node_id] = self._beginning(node_id, LABEL_LEN)
        return label

    def tip(self, node_id: NodeId, cost: str) -> str:
        """Return the tooltip of a message: who wrote it, its version, the cost, its beginning."""
        head = " · ".join(filter(None, (self._speaker(node_id), self._version(node_id), cost)))
        return f"{head}\n{self._beginning(node_id, TIP_LEN)}".strip()

    def spoken(self, node_id: NodeId) -> str:
        """Return the name of a message for screen readers."""
        row = self.layout.places[node_id].row
        text = self._beginning(node_id, TIP_LEN)
        name = branches.message_spoken(speaker=self._speaker(node_id), number=row + 1, text=text)
        version = self._version(node_id)
        return f"{name}, {version}" if version else name

    # Ways between messages

    def above(self, node_id: NodeId) -> NodeId | None:
        return self.conversation.nodes[node_id].parent

    def below(self, node_id: NodeId) -> NodeId | None:
        return version_on_show(self.conversation, node_id)

    def end_of(self, node_id: NodeId) -> NodeId:
        return branch_end(self.conversation, node_id)

    def fork(self, node_id: NodeId, step: int) -> NodeId:
        """Return the next message with versions on the branch, up (-1) or down (1), or its end."""
        at = node_id
        while (after := self.above(at) if step < 0 else self.below(at)) is not None:
            at = after
            if len(versions(self.conversation, at)) > 1:
                break
        return at

    def _speaker(self, node_id: NodeId) -> str:
        return words.YOU if self.role(node_id) is Role.USER else words.ASSISTANT

    def _version(self, node_id: NodeId) -> str:
        siblings = versions(self.conversation, node_id)
        if len(siblings) == 1:
            return ""
        return words.version_spoken(number=siblings.index(node_id) + 1, count=len(siblings))

    def _beginning(self, node_id: NodeId, length: int) -> str:
        """Return the beginning of the text; of a message without text, a file or its state."""
        node = self.conversation.nodes[node_id]
        text = one_line(node.content[:_SEARCHED_LEN], length)
        if text:
            return text
        names = [attachment.name for attachment in node.attachments]
        return names[0] if names else _state(node.status)


def _state(status: MessageStatus) -> str:
    match status:
        case MessageStatus.STREAMING:
            return words.ANSWERING
        case MessageStatus.STOPPED | MessageStatus.FAILED:
            return words.NO_ANSWER
        case MessageStatus.COMPLETE:
            return words.SILENT
