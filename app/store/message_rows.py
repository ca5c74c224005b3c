"""Rows of messages as nodes of app.conversation, and back. Pure.

What each reply has of its own stands in columns: as JSON it took half of the time to open a long conversation.
What most replies share (model, sampling) is JSON, parsed once.
"""

from __future__ import annotations

import json
import struct
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple, cast

from app.conversation.tree import Generation, MessageStatus, Node, NodeId
from app.store.codec import from_json_or_none, to_json
from app.store.database import Value
from engine.types import (
    ConversationId,
    FinishReason,
    Problem,
    PromptPlan,
    ReplyTokens,
    Role,
    Usage,
)

_TOKEN_BYTES = 4


class MessageRow(NamedTuple):
    """What every message has; the fields are the first columns."""

    conversation_id: str
    node_id: str
    parent: str | None
    role: str
    status: str
    created_at: float
    generation: str | None  # without usage and finish reason
    finish_reason: str | None
    problem: str | None
    content: str
    reasoning: str


class TokensRow(NamedTuple):
    """The columns that follow: the ids of a reply, all NULL without."""

    token_ids: bytes
    answer_start: int
    tokenizer_hash: str


class UsageRow(NamedTuple):
    """The last columns: what a reply cost, all NULL when that is not known."""

    prompt_tokens: int
    restored: int
    replayed: int
    read: int
    reasons: str  # a JSON list
    output_tokens: int
    queue_ms: float
    render_ms: float
    restore_ms: float
    prefill_ms: float
    ttft_ms: float
    total_ms: float
    decode_tok_s: float
    cache_bytes: int


COLUMNS = (*MessageRow._fields, *TokensRow._fields, *UsageRow._fields)

_TOKENS_AT = len(MessageRow._fields)
_USAGE_AT = _TOKENS_AT + len(TokensRow._fields)
_NO_TOKENS = (None,) * len(TokensRow._fields)
_NO_USAGE = (None,) * len(UsageRow._fields)


def message_values(conversation_id: ConversationId, node: Node) -> tuple[Value, ...]:
    """One value for each of COLUMNS."""
    how, reply = node.generation, node.reply
    usage = how and how.usage
    row = MessageRow(
        conversation_id=conversation_id,
        node_id=node.node_id,
        parent=node.parent,
        role=node.role,
        status=node.status,
        created_at=node.created_at,
        generation=how and to_json(replace(how, usage=None, finish_reason=None)),
        finish_reason=how and how.finish_reason,
        problem=node.problem and to_json(node.problem),
        content=node.content,
        reasoning=node.reasoning,
    )
    tokens = _NO_TOKENS if reply is None else _tokens_row(reply)
    return (*row, *tokens, *(_NO_USAGE if usage is None else _usage_row(usage)))


def node_from(values: tuple[Value, ...]) -> Node:
    """The node of a row with COLUMNS."""
    row = MessageRow._make(values[:_TOKENS_AT])
    has_tokens = values[_TOKENS_AT] is not None
    return Node(
        node_id=NodeId(row.node_id),
        parent=None if row.parent is None else NodeId(row.parent),
        role=Role(row.role),
        status=MessageStatus(row.status),
        created_at=row.created_at,
        generation=_generation(row, values[_USAGE_AT:]),
        problem=None if row.problem is None else from_json_or_none(Problem, row.problem),
        content=row.content,
        reasoning=row.reasoning,
        reply=_reply(TokensRow._make(values[_TOKENS_AT:_USAGE_AT])) if has_tokens else None,
    )


def _generation(row: MessageRow, usage: tuple[Value, ...]) -> Generation | None:
    how = None if row.generation is None else _planned(row.generation)
    if how is None or row.finish_reason is None:
        return how
    # SQLite makes NULL of a figure that is no number: such a cost is not known either.
    known = None if None in usage else _usage(UsageRow._make(usage))
    return replace(how, usage=known, finish_reason=FinishReason(row.finish_reason))


@lru_cache(maxsize=16)
def _planned(text: str) -> Generation | None:
    return from_json_or_none(Generation, text)


@lru_cache(maxsize=64)
def _reasons(text: str) -> tuple[str, ...]:
    return tuple(cast("list[str]", json.loads(text)))


def _reply(row: TokensRow) -> ReplyTokens:
    num_tokens = len(row.token_ids) // _TOKEN_BYTES
    return ReplyTokens(
        token_ids=struct.unpack(f"<{num_tokens}I", row.token_ids),
        answer_start=row.answer_start,
        tokenizer_hash=row.tokenizer_hash,
    )


def _tokens_row(reply: ReplyTokens) -> TokensRow:
    # Unsigned 32 bit, little endian on every machine: data folders move.
    return TokensRow(
        token_ids=struct.pack(f"<{len(reply.token_ids)}I", *reply.token_ids),
        answer_start=reply.answer_start,
        tokenizer_hash=reply.tokenizer_hash,
    )


def _usage(row: UsageRow) -> Usage:
    plan = PromptPlan(
        prompt_tokens=row.prompt_tokens,
        restored=row.restored,
        replayed=row.replayed,
        read=row.read,
        reasons=_reasons(row.reasons),
    )
    return Usage(
        plan=plan,
        output_tokens=row.output_tokens,
        queue_ms=row.queue_ms,
        render_ms=row.render_ms,
        restore_ms=row.restore_ms,
        prefill_ms=row.prefill_ms,
        ttft_ms=row.ttft_ms,
        total_ms=row.total_ms,
        decode_tok_s=row.decode_tok_s,
        cache_bytes=row.cache_bytes,
    )


def _usage_row(usage: Usage) -> UsageRow:
    plan = usage.plan
    return UsageRow(
        prompt_tokens=plan.prompt_tokens,
        restored=plan.restored,
        replayed=plan.replayed,
        read=plan.read,
        reasons=json.dumps(plan.reasons),
        output_tokens=usage.output_tokens,
        queue_ms=usage.queue_ms,
        render_ms=usage.render_ms,
        restore_ms=usage.restore_ms,
        prefill_ms=usage.prefill_ms,
        ttft_ms=usage.ttft_ms,
        total_ms=usage.total_ms,
        decode_tok_s=usage.decode_tok_s,
        cache_bytes=usage.cache_bytes,
    )
