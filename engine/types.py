"""Plain values that the app and the engine exchange: messages, requests, results.

Everything here is frozen and free of mlx: it may cross threads.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NewType

from typing_extensions import override

RequestId = NewType("RequestId", str)
ConversationId = NewType("ConversationId", str)


class Role(StrEnum):
    """Who wrote a message."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"  # what a tool that the assistant called gave back


class Channel(StrEnum):
    """Which part of a reply a piece of text belongs to."""

    REASONING = "reasoning"
    ANSWER = "answer"


class FinishReason(StrEnum):
    """Why a reply ended."""

    STOP = "stop"
    LENGTH = "length"
    CANCELLED = "cancelled"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyTokens:
    """The ids that a model produced for one reply, kept so that the reply is never tokenised again.

    token_ids[:answer_start] is reasoning with its closing marker, the rest is the answer. The ids
    mean something only to the tokenizer whose hash is given. They are held as bytes, a tenth of a
    tuple's memory: thousands of replies are open and few are read.
    """

    token_bytes: bytes  # 32 bits a token, unsigned, little endian: data folders move
    answer_start: int
    tokenizer_hash: str

    @classmethod
    def of(cls, token_ids: Sequence[int], *, answer_start: int, tokenizer_hash: str) -> ReplyTokens:
        return cls(
            token_bytes=struct.pack(f"<{len(token_ids)}I", *token_ids),
            answer_start=answer_start,
            tokenizer_hash=tokenizer_hash,
        )

    @property
    def token_ids(self) -> tuple[int, ...]:
        """Unpacked anew each time."""
        return struct.unpack(f"<{self.num_tokens}I", self.token_bytes)

    @property
    def num_tokens(self) -> int:
        return len(self.token_bytes) // 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of the branch that a request continues."""

    role: Role
    content: str
    reasoning: str = ""
    reply: ReplyTokens | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingParams:
    """How the next token is drawn.

    temperature 0 (or less) is greedy; 0 elsewhere, or a repetition penalty of 1, switches a filter off.
    """

    temperature: float = 0.7
    top_p: float = 0.95
    top_k: int = 0
    min_p: float = 0.0
    min_kept: int = 1  # tokens that min_p leaves in any case
    xtc_probability: float = 0.0  # of leaving out, for one token, the likeliest but the last
    xtc_threshold: float = 0.1  # of those at least as likely as this, 0 to 0.5
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ForcedReply:
    """A reply that is fed token by token instead of being sampled (benchmarks and tests)."""

    text: str
    reasoning: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Write the assistant's next message of a conversation, or the rest of one.

    messages is the whole visible branch. It ends with a user message, or with a reply that was
    stopped: its ids are fed as they are, and the output continues them. new_messages are
    the indices of those that this step adds or changes: their tokens count as read, the others as
    replayed. max_tokens is for what is written now.
    """

    request_id: RequestId
    conversation_id: ConversationId
    messages: tuple[Message, ...]
    new_messages: frozenset[int]
    sampling: SamplingParams = field(default_factory=SamplingParams)
    max_tokens: int = 4096
    thinking: bool | None = None  # None: the template's own default
    keep_thinking: bool = False  # earlier thoughts stay in the prompt, if the template can
    forced: ForcedReply | None = None
    stop_after: int | None = None  # cancel after this many delivered tokens
    record_logits: bool = False  # keep the logits before every token for Verify
    side: bool = False  # titles and the like: publishes nothing, evicts nothing


class ReasonKind(StrEnum):
    """Why tokens of a prompt were not restored."""

    NEW_CONVERSATION = "new_conversation"  # nothing was known of it
    NEW_MESSAGE = "new_message"  # the message that this step adds
    EDITED_MESSAGE = "edited_message"  # a message reads differently than before
    SYSTEM_CHANGED = "system_changed"
    OPTIONS_CHANGED = "options_changed"  # thinking switched, or kept or dropped thoughts
    REASONING_DROPPED = "reasoning_dropped"  # the template leaves thoughts out of earlier replies
    REPLY_RENDERED = "reply_rendered"  # a reply reads otherwise than it was written
    SNAPSHOT_EVICTED = "snapshot_evicted"  # K/V is there, the state had to make room
    STATE_EVICTED = "state_evicted"  # all of it had to make room
    MODEL_RELOADED = "model_reloaded"  # another model was loaded meanwhile
    FAULT = "fault"  # a stored point was not what it said, and was dropped


# A look-up takes a fifth of the time of calling the enum, and a long conversation has thousands of reasons.
_REASON_KINDS = {kind.value: kind for kind in ReasonKind}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why num_tokens of a prompt, from token `at` on, had to be fed. text is the sentence."""

    kind: ReasonKind
    num_tokens: int
    at: int
    text: str

    @classmethod
    def of(cls, kind: str, *, num_tokens: int, at: int, text: str) -> Reason:
        """Make a reason of stored values.

        Raises:
            KeyError: kind is no ReasonKind.
        """
        return cls(kind=_REASON_KINDS[kind], num_tokens=num_tokens, at=at, text=text)


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptPlan:
    """Where the tokens of a prompt come from: restored + replayed + read = prompt_tokens.

    matched tokens were known, usable or not: matched >= restored.
    """

    prompt_tokens: int
    restored: int
    replayed: int
    read: int
    matched: int = 0
    reasons: tuple[Reason, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What one request cost. Times are milliseconds, measured on the engine thread.

    ttft_ms runs from submission, the queue included, to the first delivered token.
    """

    plan: PromptPlan
    output_tokens: int
    queue_ms: float
    render_ms: float
    restore_ms: float
    prefill_ms: float
    ttft_ms: float
    total_ms: float
    decode_tok_s: float
    cache_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """What is known of a loaded model."""

    path: str
    name: str
    model_type: str
    context_len: int
    weight_bytes: int
    has_thinking: bool
    can_keep_thinking: bool  # the template has a switch that leaves earlier thoughts in the prompt
    tokenizer_hash: str
    template_hash: str
    kv_bytes_per_token: int
    snapshot_bytes: int
    default_sampling: SamplingParams


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheStatistics:
    """Bytes and counters of the prefix cache; the parts add up to total_bytes."""

    kv_bytes: int
    snapshot_bytes: int
    hot_bytes: int
    total_bytes: int
    budget_bytes: int
    num_nodes: int
    num_snapshots: int
    num_hot: int
    matches: int
    evictions: int
    restore_faults: int
    copied_bytes: int
    audits: int  # stored points that were computed anew and compared
    audit_faults: int  # those that differed, and were dropped


NOTHING_CACHED = CacheStatistics(
    kv_bytes=0,
    snapshot_bytes=0,
    hot_bytes=0,
    total_bytes=0,
    budget_bytes=0,
    num_nodes=0,
    num_snapshots=0,
    num_hot=0,
    matches=0,
    evictions=0,
    restore_faults=0,
    copied_bytes=0,
    audits=0,
    audit_faults=0,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """A finished request held to fresh runs of the bare model (Verify).

    max_difference is max |engine - naive| over all logits, relative to their standard deviation,
    where naive reads the prompt in one go; replay_difference is the same against a cold run by the
    same passes, whose every bit is to be the same.
    """

    prompt_equal: bool
    equal: bool
    max_difference: float
    replay_difference: float
    first_difference: int | None
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """An error as a person reads it: what, why, what to do; details are for the log."""

    title: str
    cause: str
    advice: str
    details: str = ""

    @override
    def __str__(self) -> str:
        return " ".join(part for part in (self.title, self.cause, self.advice) if part)
