"""The message tree of a conversation: frozen values, and functions that return changed copies.

Each message is a node below the message that it follows. Editing a message or regenerating a reply
adds a sibling. The children of one parent are the versions of one message, and one of them is on
show. To find the branch on show, `shown_path` follows the shown versions from the root. The text of
a streaming reply is kept outside the tree, in a LiveReply, so that new text does not copy the tree.
The caller supplies ids and times. No I/O, no Qt.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NewType, TypeVar

from app.conversation.attachments import Attachment, own_files
from app.conversation.placement import NO_PLACE, Placement
from app.conversation.text import clean_text, one_line, title_from
from app.words import window as words
from engine.model_titles import model_title
from engine.problem import Problem
from engine.types import ConversationId, FinishReason, ReplyTokens, Role, SamplingParams
from engine.usage import Usage

NodeId = NewType("NodeId", str)

MANUAL_TITLE_LEN = 200
# The conversation of `rejoinder chat`, which is not stored. Its cached state may be on disk.
TERMINAL_CHAT = ConversationId("terminal")


class MessageStatus(StrEnum):
    """The state of a message. A user message is always COMPLETE."""

    COMPLETE = "complete"
    STREAMING = "streaming"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """The model and options that generated a reply, and the usage of an ended reply."""

    model_path: str
    model_name: str
    # hash of the chat template: a reply is continued only with the same template
    template_hash: str
    thinking: bool | None  # None for the default of the chat template
    sampling: SamplingParams
    max_tokens: int
    usage: Usage | None = None  # None until the reply has ended
    # reason for which the reply ended; None before. ERROR: it failed, or the app ended first
    finish_reason: FinishReason | None = None
    reasoning_s: float | None = None  # measured duration of the reasoning; None if unknown
    # True if the reply comes from a file: the models of this data folder have not read it
    was_imported: bool = False
    was_quit: bool = False  # True if the reply was cut off because the app was quit

    @property
    def model_title(self) -> str:
        """The name of the model on screen. Other apps' names of models stay as they are."""
        return model_title(self.model_name) if self.model_path else self.model_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """The generation options of a conversation. A field that is None means the model's default."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    min_kept: int | None = None
    xtc_probability: float | None = None
    xtc_threshold: float | None = None
    repetition_penalty: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    seed: int | None = None
    max_tokens: int | None = None
    thinking: bool | None = None
    keep_thinking: bool = False  # True: the thoughts of earlier replies stay in the prompt
    # True: the engine may verify drafts of an answer's next tokens. None: as in the settings.
    faster_answers: bool | None = None

    def sampling(self, defaults: SamplingParams) -> SamplingParams:
        return replace(
            defaults,
            temperature=_or(self.temperature, defaults.temperature),
            top_p=_or(self.top_p, defaults.top_p),
            top_k=_or(self.top_k, defaults.top_k),
            min_p=_or(self.min_p, defaults.min_p),
            min_kept=_or(self.min_kept, defaults.min_kept),
            xtc_probability=_or(self.xtc_probability, defaults.xtc_probability),
            xtc_threshold=_or(self.xtc_threshold, defaults.xtc_threshold),
            repetition_penalty=_or(self.repetition_penalty, defaults.repetition_penalty),
            presence_penalty=_or(self.presence_penalty, defaults.presence_penalty),
            frequency_penalty=_or(self.frequency_penalty, defaults.frequency_penalty),
            seed=_or(self.seed, defaults.seed),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageNode:
    """One version of one message. A new reply has no content until it ends."""

    node_id: NodeId
    parent: NodeId | None  # None for the first message of a conversation
    role: Role
    content: str
    created_at: float  # Unix seconds
    reasoning: str = ""  # a reply's thoughts
    reply: ReplyTokens | None = None  # token ids of an ended reply; None if the engine gave none
    status: MessageStatus = MessageStatus.COMPLETE
    generation: Generation | None = None  # None for a user message
    problem: Problem | None = None  # reason why the reply failed; None if it did not fail
    deleted_at: float | None = None  # Unix seconds; None if not deleted (see deletion.py)
    attachments: tuple[Attachment, ...] = ()  # files of a user message, in order
    chat_title: str = ""  # title that the model wrote for the chat with this first message


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationSummary:
    """The fields of a conversation that the list of conversations shows."""

    conversation_id: ConversationId
    title: str
    updated_at: float
    keep_ready: bool = False
    created_at: float = 0.0
    placement: Placement = NO_PLACE


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedConversation:
    """A conversation that is marked as deleted and can still be restored."""

    summary: ConversationSummary
    deleted_at: float  # Unix seconds


@dataclass(frozen=True, slots=True)
class DraftEdit:
    """The changed text of a message in its editor, which is neither submitted nor cancelled."""

    node_id: NodeId
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A conversation with its tree of messages. Times are Unix seconds.

    The mappings are never changed in place, because older and newer values of a conversation share
    them.
    """

    conversation_id: ConversationId
    created_at: float
    updated_at: float  # when the last message was sent
    title: str = words.NEW_TITLE
    title_is_manual: bool = False
    system_prompt: str = ""
    # system prompt of the last turn; None before the first turn
    read_system_prompt: str | None = None
    # True if the user has pinned the conversation: the engine evicts its cached state last
    keep_ready: bool = False
    setup: Setup = field(default_factory=Setup)
    draft: str = ""  # text in the composer that is not sent yet
    draft_attachments: tuple[Attachment, ...] = ()  # files in the composer that are not sent yet
    # Documents of the folder, which the first message will have in front of its own files. They are
    # derived from the folder and not stored. Empty if there are messages.
    documents: tuple[Attachment, ...] = ()
    without_documents: bool = False  # True: the user begins it without the documents of its folder
    # Path of the model that the user chose for the next answers, in the place of the model of the
    # last answer; "" if the user has not chosen
    chosen_model: str = ""
    # True if the draft has a message that the user sent, and the app ended before a model read it
    draft_was_sent: bool = False
    draft_edits: tuple[DraftEdit, ...] = ()  # messages with changed text in their editors
    deleted_at: float | None = None
    # All messages, deleted ones too, in order of creation: a parent comes before its children.
    nodes: Mapping[NodeId, MessageNode] = field(default_factory=dict[NodeId, MessageNode])
    # Key: id of a parent message. Value: ids of the versions below this parent, oldest first,
    # without deleted ones. The key None has the versions of the first message.
    children: Mapping[NodeId | None, tuple[NodeId, ...]] = field(
        default_factory=dict[NodeId | None, tuple[NodeId, ...]]
    )
    # Key: id of a parent message; None for the first message. Value: id of the version on show
    # below this parent. There is an entry only if that version is not the newest.
    shown: Mapping[NodeId | None, NodeId] = field(default_factory=dict[NodeId | None, NodeId])

    def check_invariants(self) -> None:
        by_parent: dict[NodeId | None, tuple[NodeId, ...]] = {}
        seen: set[NodeId | None] = {None}
        for node_id, node in self.nodes.items():
            assert node.node_id == node_id
            assert node.parent in seen, "parents come first"
            above = self.nodes[node.parent].role if node.parent is not None else Role.ASSISTANT
            assert {above, node.role} == {Role.USER, Role.ASSISTANT}, "the roles alternate"
            seen.add(node_id)
            if node.deleted_at is None:
                by_parent[node.parent] = (*by_parent.get(node.parent, ()), node_id)
        assert dict(self.children) == by_parent
        for parent, node_id in self.shown.items():
            assert node_id in by_parent[parent][:-1], "the newest version needs no entry"


def new_conversation(conversation_id: ConversationId, *, now: float) -> Conversation:
    return Conversation(conversation_id=conversation_id, created_at=now, updated_at=now)


def summary_of(conv: Conversation, placement: Placement = NO_PLACE) -> ConversationSummary:
    return ConversationSummary(
        conversation_id=conv.conversation_id,
        title=conv.title,
        updated_at=conv.updated_at,
        keep_ready=conv.keep_ready,
        created_at=conv.created_at,
        placement=placement,
    )


def shown_path(conv: Conversation) -> tuple[MessageNode, ...]:
    """Return the messages of the branch on show, from the first to the last."""
    nodes, children, shown = conv.nodes, conv.children, conv.shown
    path: list[MessageNode] = []
    parent: NodeId | None = None
    while versions_below := children.get(parent):
        parent = shown.get(parent, versions_below[-1])
        path.append(nodes[parent])
    return tuple(path)


def has_messages(conv: Conversation) -> bool:
    return None in conv.children


def path_to(conv: Conversation, node_id: NodeId) -> tuple[MessageNode, ...]:
    """Return the messages from the first one down to a given one, which need not be on show."""
    path: list[MessageNode] = []
    at: NodeId | None = node_id
    while at is not None:
        path.append(conv.nodes[at])
        at = conv.nodes[at].parent
    return tuple(reversed(path))


def versions(conv: Conversation, node_id: NodeId) -> tuple[NodeId, ...]:
    """Return the ids of all versions of a message, oldest first. The message itself is included."""
    return conv.children[conv.nodes[node_id].parent]


def neighbour_version(conv: Conversation, node_id: NodeId, step: int) -> NodeId | None:
    """Return the version `step` places after a message's version, or None. Negative: before it."""
    siblings = versions(conv, node_id)
    index = siblings.index(node_id) + step
    return siblings[index] if 0 <= index < len(siblings) else None


def show_version(conv: Conversation, node_id: NodeId) -> Conversation:
    """Show a version of a message, and the branch below it that was last on show."""
    shown = dict(conv.shown)
    shown.pop(conv.nodes[node_id].parent, None)
    if node_id != versions(conv, node_id)[-1]:
        shown[conv.nodes[node_id].parent] = node_id
    return replace(conv, shown=shown)


def show_branch(conv: Conversation, node_id: NodeId) -> Conversation:
    """Show a message: on each level the version that leads to it, then the version itself."""
    for node in path_to(conv, node_id):
        conv = show_version(conv, node.node_id)
    return conv


def add_nodes(conv: Conversation, *added: MessageNode) -> Conversation:
    """Add messages, parents before children. Show each added version that is not deleted."""
    nodes, children, shown = dict(conv.nodes), dict(conv.children), dict(conv.shown)
    for node in added:
        assert node.node_id not in nodes
        nodes[node.node_id] = node
        if node.deleted_at is None:
            children[node.parent] = (*children.get(node.parent, ()), node.node_id)
            shown.pop(node.parent, None)
    return replace(conv, nodes=nodes, children=children, shown=shown)


def set_title(conv: Conversation, title: str) -> Conversation:
    """Set the title that the user typed. An empty title restores the automatic one."""
    title = one_line(title, MANUAL_TITLE_LEN)
    if title:
        return replace(conv, title=title, title_is_manual=True)
    path = shown_path(conv)
    automatic = path[0].chat_title or first_title(path[0]) if path else words.NEW_TITLE
    return replace(conv, title=automatic, title_is_manual=False)


def first_title(message: MessageNode) -> str:
    """Return the title from the first message: its first line, else the name of its first file."""
    names = [one.name for one in own_files(message.attachments)]
    return title_from(message.content) or next(iter(names), "")


def set_system_prompt(conv: Conversation, text: str) -> Conversation:
    return replace(conv, system_prompt=clean_text(text))


def set_draft(conv: Conversation, text: str) -> Conversation:
    """Set the draft. It also gives a conversation without messages its title."""
    draft = clean_text(text)
    was_sent = conv.draft_was_sent and bool(draft or conv.draft_attachments)
    conv = replace(conv, draft=draft, draft_was_sent=was_sent)
    if conv.title_is_manual or has_messages(conv):
        return conv
    names = [attachment.name for attachment in conv.draft_attachments]
    return replace(conv, title=title_from(draft) or next(iter(names), words.NEW_TITLE))


def set_without_documents(conv: Conversation, without: bool) -> Conversation:  # noqa: FBT001
    """Set the user's choice to begin a conversation without the documents of its folder.

    The caller derives `documents` again (folder.with_documents).
    """
    return replace(conv, without_documents=without)


def set_draft_edits(conv: Conversation, edits: Iterable[DraftEdit]) -> Conversation:
    cleaned = tuple(replace(edit, text=clean_text(edit.text)) for edit in edits)
    return replace(conv, draft_edits=cleaned)


def set_draft_attachments(conv: Conversation, files: tuple[Attachment, ...]) -> Conversation:
    """Set the files of the draft. They also give a conversation without text its title."""
    was_sent = conv.draft_was_sent and bool(conv.draft or files)
    changed = replace(conv, draft_attachments=files, draft_was_sent=was_sent)
    if conv.title_is_manual or has_messages(conv) or conv.draft.strip():
        return changed
    return replace(changed, title=files[0].name if files else words.NEW_TITLE)


def replace_node(conv: Conversation, node: MessageNode) -> Conversation:
    """Replace the value of a message that is already in the tree."""
    return replace(conv, nodes={**conv.nodes, node.node_id: node})


_Value = TypeVar("_Value", int, float)


def _or(override: _Value | None, default: _Value) -> _Value:
    return default if override is None else override
