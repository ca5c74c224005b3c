"""Conversion between message nodes of app.conversation and rows of the table messages. Pure.

Values that differ from reply to reply have their own columns: parsing them from JSON took half of
the time to open a long conversation. Values that most replies share, such as the model and the
sampling options, are stored together as one JSON text, which is parsed once and cached.
"""

from __future__ import annotations

import json
import logging
from dataclasses import asdict, fields, replace
from functools import lru_cache
from typing import Any, NamedTuple

from app.conversation.tree import Generation, MessageNode, MessageStatus, NodeId
from app.store.codec import from_json_or_none, to_json
from app.store.schema import Value
from engine.problem import Problem
from engine.types import ConversationId, FinishReason, ReplyTokens, Role, SamplingParams
from engine.usage import PromptPlan, Reason, Usage

log = logging.getLogger(__name__)


class MessageRow(NamedTuple):
    """The columns of the table messages that every message uses.

    A field is named like its column.
    """

    conversation_id: str
    node_id: str
    parent: str | None
    role: str
    status: str
    created_at: float
    generation: str | None  # JSON of a Generation without seed, usage and finish reason
    seed: int | None
    finish_reason: str | None
    problem: str | None  # JSON of a Problem
    deleted_at: float | None
    content: str
    reasoning: str
    chat_title: str | None  # NULL without a title by the model


class TokensRow(NamedTuple):
    """The columns of the table messages for a reply's token ids.

    All are NULL if there are no ids.
    """

    token_ids: bytes
    answer_start: int
    tokenizer_hash: str


class UsageRow(NamedTuple):
    """The columns of the table messages for a reply's usage.

    All are NULL if the usage is unknown.
    """

    prompt_tokens: int
    restored: int
    replayed: int
    read: int
    reasons: str  # JSON list of Reason objects
    output_tokens: int
    queue_ms: float
    render_ms: float
    restore_ms: float
    prefill_ms: float
    ttft_ms: float
    total_ms: float
    decode_tok_s: float
    cache_bytes: int
    passes: int
    drafted_tokens: int
    accepted_tokens: int
    restored_disk: int
    disk_ms: float
    written_bytes: int
    load_ms: float
    restored_ahead: int
    saved_ms: float


COLUMNS = (*MessageRow._fields, *TokensRow._fields, *UsageRow._fields)

_TOKENS_AT = len(MessageRow._fields)
_USAGE_AT = _TOKENS_AT + len(TokensRow._fields)
# These dictionaries are five times as fast as a call of the enum class. Opening a long conversation
# looks up thousands of values.
_ROLES = {role.value: role for role in Role}
_STATUSES = {status.value: status for status in MessageStatus}
_FINISH_REASONS = {reason.value: reason for reason in FinishReason}
_NO_TOKENS = (None,) * len(TokensRow._fields)
_NO_USAGE = (None,) * len(UsageRow._fields)


def message_values(conversation_id: ConversationId, node: MessageNode) -> tuple[Value, ...]:
    """Return the values of a message's database row, in the order of COLUMNS."""
    how, reply = node.generation, node.reply
    usage = how and how.usage
    row = MessageRow(
        conversation_id=conversation_id,
        node_id=node.node_id,
        parent=node.parent,
        role=node.role,
        status=node.status,
        created_at=node.created_at,
        generation=how and to_json(_shared(how)),
        seed=how and how.sampling.seed,
        finish_reason=how and how.finish_reason,
        problem=node.problem and to_json(node.problem),
        deleted_at=node.deleted_at,
        content=node.content,
        reasoning=node.reasoning,
        chat_title=node.chat_title or None,
    )
    tokens = _NO_TOKENS if reply is None else _tokens_row(reply)
    return (*row, *tokens, *(_NO_USAGE if usage is None else _usage_row(usage)))


def node_from(values: tuple[Value, ...]) -> MessageNode:
    """Build a message node from a database row. `values` are in the order of COLUMNS."""
    row = MessageRow._make(values[:_TOKENS_AT])
    has_tokens = values[_TOKENS_AT] is not None
    return MessageNode(
        node_id=NodeId(row.node_id),
        parent=None if row.parent is None else NodeId(row.parent),
        role=_ROLES[row.role],
        status=_STATUSES[row.status],
        created_at=row.created_at,
        generation=_generation(row, values[_USAGE_AT:]),
        problem=None if row.problem is None else from_json_or_none(Problem, row.problem),
        deleted_at=row.deleted_at,
        content=row.content,
        reasoning=row.reasoning,
        reply=_reply(TokensRow._make(values[_TOKENS_AT:_USAGE_AT])) if has_tokens else None,
        chat_title=row.chat_title or "",
    )


def _shared(how: Generation) -> Generation:
    """Return a copy of a Generation without the values that differ from reply to reply."""
    sampling = replace(how.sampling, seed=0)
    return replace(how, sampling=sampling, usage=None, finish_reason=None)


def _generation(row: MessageRow, usage: tuple[Value, ...]) -> Generation | None:
    shared = None if row.generation is None else _read_shared(row.generation)
    if shared is None:
        return None
    # SQLite stores NaN as NULL. If any usage column is NULL, the usage counts as unknown.
    known = None if None in usage else _usage(UsageRow._make(usage))
    finish_reason = None if row.finish_reason is None else _FINISH_REASONS[row.finish_reason]
    # Calling the class with keyword arguments takes half as long as dataclasses.replace().
    sampling = SamplingParams(**shared.sampling, seed=row.seed or 0)
    return Generation(
        **shared.generation, sampling=sampling, usage=known, finish_reason=finish_reason
    )


class _Shared(NamedTuple):
    """Arguments for Generation and SamplingParams that many replies have in common."""

    generation: dict[str, Any]
    sampling: dict[str, Any]


@lru_cache(maxsize=16)
def _read_shared(text: str) -> _Shared | None:
    how = from_json_or_none(Generation, text)
    if how is None:
        return None
    return _Shared(
        _arguments(how, without={"sampling", "usage", "finish_reason"}),
        _arguments(how.sampling, without={"seed"}),
    )


def _arguments(value: Generation | SamplingParams, *, without: set[str]) -> dict[str, Any]:
    names = {field.name for field in fields(value)} - without
    return {name: getattr(value, name) for name in names}


def _reasons(text: str) -> tuple[Reason, ...]:
    # from_json() is not used here, because its type checks take longer than reading the rest of the
    # row. The first versions of the app stored sentences instead of JSON; these are dropped.
    if not text.startswith("[{"):
        return ()
    try:
        return tuple(
            [
                Reason.of(
                    one["kind"],
                    num_tokens=one["num_tokens"],
                    at=one["at"],
                    text=one["text"],
                    is_again=one.get("is_again", False),
                    message=one.get("message"),
                )
                for one in json.loads(text)
            ]
        )
    except (KeyError, ValueError) as error:
        log.warning("ignoring damaged reasons in the database: %r", error)
        return ()


def _reply(row: TokensRow) -> ReplyTokens:
    return ReplyTokens(
        token_bytes=row.token_ids,
        answer_start=row.answer_start,
        tokenizer_hash=row.tokenizer_hash,
    )


def _tokens_row(reply: ReplyTokens) -> TokensRow:
    return TokensRow(
        token_ids=reply.token_bytes,
        answer_start=reply.answer_start,
        tokenizer_hash=reply.tokenizer_hash,
    )


def _usage(row: UsageRow) -> Usage:
    plan = PromptPlan(
        prompt_tokens=row.prompt_tokens,
        restored=row.restored,
        replayed=row.replayed,
        read=row.read,
        restored_disk=row.restored_disk,
        restored_ahead=row.restored_ahead,
        matched=row.restored,  # `matched` is not stored; `restored` is a lower bound of it
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
        passes=row.passes,
        drafted_tokens=row.drafted_tokens,
        accepted_tokens=row.accepted_tokens,
        disk_ms=row.disk_ms,
        written_bytes=row.written_bytes,
        load_ms=row.load_ms,
        saved_ms=row.saved_ms,
    )


def _usage_row(usage: Usage) -> UsageRow:
    plan = usage.plan
    return UsageRow(
        prompt_tokens=plan.prompt_tokens,
        restored=plan.restored,
        replayed=plan.replayed,
        read=plan.read,
        reasons=json.dumps([asdict(reason) for reason in plan.reasons], separators=(",", ":")),
        output_tokens=usage.output_tokens,
        queue_ms=usage.queue_ms,
        render_ms=usage.render_ms,
        restore_ms=usage.restore_ms,
        prefill_ms=usage.prefill_ms,
        ttft_ms=usage.ttft_ms,
        total_ms=usage.total_ms,
        decode_tok_s=usage.decode_tok_s,
        cache_bytes=usage.cache_bytes,
        passes=usage.passes,
        drafted_tokens=usage.drafted_tokens,
        accepted_tokens=usage.accepted_tokens,
        restored_disk=plan.restored_disk,
        disk_ms=usage.disk_ms,
        written_bytes=usage.written_bytes,
        load_ms=usage.load_ms,
        restored_ahead=plan.restored_ahead,
        saved_ms=usage.saved_ms,
    )
