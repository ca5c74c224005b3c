"""The message tree of a conversation, as frozen values; every change is a function that returns a new one.

A fork is a parent with several children: the versions of one message. Streamed text lives outside the tree
until the reply ends, so no delta copies anything. Ids and times are passed in: no clock, no I/O, no Qt.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NewType, TypeVar

from app.conversation.text import clean_text, one_line, title_from
from app.words import window as words
from engine.events import RequestFinished
from engine.types import (
    ConversationId,
    FinishReason,
    Problem,
    ReplyTokens,
    Role,
    SamplingParams,
    Usage,
)

NodeId = NewType("NodeId", str)

MANUAL_TITLE_LEN = 200


class MessageStatus(StrEnum):
    """How far a message is. A user's message is always complete."""

    COMPLETE = "complete"
    STREAMING = "streaming"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """How a reply was generated."""

    model_path: str
    model_name: str
    template_hash: str
    thinking: bool | None
    sampling: SamplingParams
    max_tokens: int
    usage: Usage | None = None
    finish_reason: FinishReason | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What a conversation overrides; None is the model's own default."""

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
    keep_thinking: bool = False  # earlier thoughts stay in the prompt

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
    """One version of one message. The content of a streaming reply is empty until it ends."""

    node_id: NodeId
    parent: NodeId | None
    role: Role
    content: str
    created_at: float
    reasoning: str = ""
    reply: ReplyTokens | None = None
    status: MessageStatus = MessageStatus.COMPLETE
    generation: Generation | None = None
    problem: Problem | None = None
    deleted_at: float | None = None  # see deletion.py


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationSummary:
    """What a list of conversations shows."""

    conversation_id: ConversationId
    title: str
    updated_at: float
    keep_ready: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A conversation and its tree. Times are Unix seconds.

    nodes and children are in order of creation, parents first; children has the root messages under None
    and no deleted ones.
    shown names the version on show only where that is not the newest. The mappings are never changed in
    place: values share them.
    """

    conversation_id: ConversationId
    created_at: float
    updated_at: float  # when the last message was sent
    title: str = words.NEW_TITLE
    title_is_manual: bool = False
    system_prompt: str = ""
    read_system_prompt: str | None = None  # what the last turn sent; None before the first
    keep_ready: bool = False  # its state makes room last
    setup: Setup = field(default_factory=Setup)
    draft: str = ""
    deleted_at: float | None = None
    nodes: Mapping[NodeId, MessageNode] = field(default_factory=dict[NodeId, MessageNode])
    children: Mapping[NodeId | None, tuple[NodeId, ...]] = field(
        default_factory=dict[NodeId | None, tuple[NodeId, ...]]
    )
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


def summary_of(conv: Conversation) -> ConversationSummary:
    return ConversationSummary(
        conversation_id=conv.conversation_id,
        title=conv.title,
        updated_at=conv.updated_at,
        keep_ready=conv.keep_ready,
    )


def shown_path(conv: Conversation) -> tuple[MessageNode, ...]:
    """The messages on show, first message first."""
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
    """The messages from the first one to this one, whichever are on show."""
    path: list[MessageNode] = []
    at: NodeId | None = node_id
    while at is not None:
        path.append(conv.nodes[at])
        at = conv.nodes[at].parent
    return tuple(reversed(path))


def versions(conv: Conversation, node_id: NodeId) -> tuple[NodeId, ...]:
    """All versions of a message, oldest first, itself included."""
    return conv.children[conv.nodes[node_id].parent]


def show_version(conv: Conversation, node_id: NodeId) -> Conversation:
    """Show this version of its message; below it, what was on show there last."""
    shown = dict(conv.shown)
    shown.pop(conv.nodes[node_id].parent, None)
    if node_id != versions(conv, node_id)[-1]:
        shown[conv.nodes[node_id].parent] = node_id
    return replace(conv, shown=shown)


def add_nodes(conv: Conversation, *added: MessageNode) -> Conversation:
    """Put messages into the tree, parents first, and show them."""
    nodes, children, shown = dict(conv.nodes), dict(conv.children), dict(conv.shown)
    for node in added:
        assert node.node_id not in nodes
        nodes[node.node_id] = node
        if node.deleted_at is None:
            children[node.parent] = (*children.get(node.parent, ()), node.node_id)
            shown.pop(node.parent, None)
    return replace(conv, nodes=nodes, children=children, shown=shown)


def set_title(conv: Conversation, title: str) -> Conversation:
    """Name a conversation by hand; an empty title goes back to the automatic one."""
    title = one_line(title, MANUAL_TITLE_LEN)
    if title:
        return replace(conv, title=title, title_is_manual=True)
    path = shown_path(conv)
    automatic = title_from(path[0].content) if path else words.NEW_TITLE
    return replace(conv, title=automatic, title_is_manual=False)


def set_system_prompt(conv: Conversation, text: str) -> Conversation:
    return replace(conv, system_prompt=clean_text(text))


def set_draft(conv: Conversation, text: str) -> Conversation:
    return replace(conv, draft=clean_text(text))


def set_generation(conv: Conversation, reply_id: NodeId, generation: Generation) -> Conversation:
    """Say how a reply is generated, when the model was not known at sending."""
    return replace_node(conv, replace(conv.nodes[reply_id], generation=generation))


def resume_reply(conv: Conversation, reply_id: NodeId) -> Conversation:
    """A reply that had ended goes on. Its ids are those of what it said, so they are not kept with more."""
    node = conv.nodes[reply_id]
    assert node.status is not MessageStatus.STREAMING
    status = MessageStatus.STREAMING
    return replace_node(conv, replace(node, status=status, reply=None, problem=None))


def finish_reply(conv: Conversation, reply_id: NodeId, finished: RequestFinished) -> Conversation:
    """The engine ended the reply: complete, or stopped and kept."""
    node = conv.nodes[reply_id]
    generation = node.generation and replace(
        node.generation, usage=finished.usage, finish_reason=finished.reason
    )
    ended = replace(
        node,
        content=finished.content,
        reasoning=finished.reasoning,
        reply=finished.reply,
        status=_status_after(finished.reason),
        generation=generation,
    )
    return _end_reply(conv, ended)


def stop_reply(
    conv: Conversation, reply_id: NodeId, *, content: str, reasoning: str
) -> Conversation:
    """The reply ends with what was streamed, without a word from the engine."""
    node = conv.nodes[reply_id]
    status = MessageStatus.STOPPED
    return _end_reply(conv, replace(node, content=content, reasoning=reasoning, status=status))


def fail_reply(
    conv: Conversation, reply_id: NodeId, problem: Problem, *, content: str, reasoning: str
) -> Conversation:
    """The engine could not finish the reply; what was streamed is kept."""
    node = replace(conv.nodes[reply_id], status=MessageStatus.FAILED, problem=problem)
    return _end_reply(conv, replace(node, content=content, reasoning=reasoning))


def _end_reply(conv: Conversation, ended: MessageNode) -> Conversation:
    assert conv.nodes[ended.node_id].status is MessageStatus.STREAMING, "a reply ends once"
    return replace_node(conv, ended)


def replace_node(conv: Conversation, node: MessageNode) -> Conversation:
    """Take another value for a message that is there."""
    return replace(conv, nodes={**conv.nodes, node.node_id: node})


def _status_after(reason: FinishReason) -> MessageStatus:
    match reason:
        case FinishReason.STOP | FinishReason.LENGTH:
            return MessageStatus.COMPLETE
        case FinishReason.CANCELLED:
            return MessageStatus.STOPPED
        case FinishReason.ERROR:
            return MessageStatus.FAILED


_Value = TypeVar("_Value", int, float)


def _or(override: _Value | None, default: _Value) -> _Value:
    return default if override is None else override
