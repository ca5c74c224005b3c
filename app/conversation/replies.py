"""A reply in the message tree: its generation, its end, and its later use. Pure, as tree.py."""

from __future__ import annotations

from dataclasses import replace

from app.conversation.tree import (
    Conversation,
    Generation,
    MessageNode,
    MessageStatus,
    NodeId,
    replace_node,
    versions,
)
from engine.events import RequestFinished
from engine.problem import Problem
from engine.types import FinishReason


def set_generation(conv: Conversation, reply_id: NodeId, generation: Generation) -> Conversation:
    """Set the model and options of a reply. They are unknown until a model is ready."""
    return replace_node(conv, replace(conv.nodes[reply_id], generation=generation))


def resume_reply(conv: Conversation, reply_id: NodeId) -> Conversation:
    """Set an ended reply to STREAMING again, so that it can be continued.

    The token ids are dropped, because more text will follow and they belong to the old text only.
    """
    node = conv.nodes[reply_id]
    assert node.status is not MessageStatus.STREAMING
    status = MessageStatus.STREAMING
    return replace_node(conv, replace(node, status=status, reply=None, problem=None))


def finish_reply(
    conv: Conversation,
    reply_id: NodeId,
    finished: RequestFinished,
    *,
    reasoning_s: float | None = None,
) -> Conversation:
    """End a streaming reply with the text, token ids and usage that the engine reported.

    reasoning_s: seconds of reasoning, in addition to those before the reply was continued.
    """
    node = conv.nodes[reply_id]
    generation = node.generation and replace(
        node.generation,
        usage=finished.usage,
        finish_reason=finished.reason,
        reasoning_s=_sum(node.generation.reasoning_s, reasoning_s),
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
    """Mark a streaming reply as stopped, and keep the text received so far.

    For replies whose end the engine does not report by an event.
    """
    node = conv.nodes[reply_id]
    status = MessageStatus.STOPPED
    return _end_reply(conv, replace(node, content=content, reasoning=reasoning, status=status))


def fail_reply(
    conv: Conversation, reply_id: NodeId, problem: Problem, *, content: str, reasoning: str
) -> Conversation:
    """Mark a streaming reply as failed, and keep the text received so far."""
    node = replace(conv.nodes[reply_id], status=MessageStatus.FAILED, problem=problem)
    return _end_reply(conv, replace(node, content=content, reasoning=reasoning))


def _end_reply(conv: Conversation, ended: MessageNode) -> Conversation:
    assert conv.nodes[ended.node_id].status is MessageStatus.STREAMING, "a reply ends once"
    return replace_node(conv, ended)


def _status_after(reason: FinishReason) -> MessageStatus:
    match reason:
        case FinishReason.STOP | FinishReason.LENGTH:
            return MessageStatus.COMPLETE
        case FinishReason.CANCELLED:
            return MessageStatus.STOPPED
        case FinishReason.ERROR:
            return MessageStatus.FAILED


def _sum(before: float | None, added: float | None) -> float | None:
    return before if added is None else (before or 0.0) + added


def can_continue(conv: Conversation, reply_id: NodeId) -> bool:
    """Return True if a reply has text, was cut off, and has no message below it."""
    reply = conv.nodes[reply_id]
    is_cut = reply.status in (MessageStatus.STOPPED, MessageStatus.FAILED) or is_at_limit(reply)
    return is_cut and has_text(reply) and reply_id not in conv.children


def is_empty_reply(node: MessageNode) -> bool:
    """Return True for a reply that was stopped before its first token."""
    return node.status is MessageStatus.STOPPED and not has_text(node)


def empty_versions(conv: Conversation, reply: MessageNode) -> list[NodeId]:
    """Return the other versions of a reply that are empty and have no message below them."""
    others = (one for one in versions(conv, reply.node_id) if one != reply.node_id)
    return [one for one in others if is_empty_reply(conv.nodes[one]) and one not in conv.children]


def can_retry(conv: Conversation, reply_id: NodeId) -> bool:
    """Return True if a reply has ended without an answer, and has no message below it."""
    reply = conv.nodes[reply_id]
    return (is_empty_reply(reply) or is_silent(reply)) and reply_id not in conv.children


def is_silent(node: MessageNode) -> bool:
    """Return True for a reply that the model ended itself, without an answer."""
    reason = node.generation and node.generation.finish_reason
    return reason is FinishReason.STOP and not node.content.strip()


def is_at_limit(reply: MessageNode) -> bool:
    """Return True if a reply reached its own max_tokens, and False if the context was full."""
    generation = reply.generation
    if generation is None or generation.finish_reason is not FinishReason.LENGTH:
        return False
    if generation.usage is None:
        return False
    # The tokens of a preview count for the limit, those of a reply before it was continued do not.
    num_tokens = 0 if reply.reply is None else reply.reply.num_tokens
    num_drawn = generation.usage.output_tokens
    return num_drawn >= generation.max_tokens or num_tokens == generation.max_tokens


def has_text(reply: MessageNode) -> bool:
    """Return True if a reply has text or tokens.

    It can have tokens and no text: it may have been cut off inside its first character.
    """
    has_tokens = reply.reply is not None and bool(reply.reply.token_bytes)
    return has_tokens or bool(reply.content or reply.reasoning)
