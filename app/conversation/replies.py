"""A reply in the message tree, from its generation to its end. Pure functions, as in tree.py."""

from __future__ import annotations

from dataclasses import replace

from app.conversation.tree import (
    Conversation,
    Generation,
    MessageNode,
    MessageStatus,
    NodeId,
    replace_node,
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
