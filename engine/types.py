"""Plain values that the app and the engine exchange: messages, requests, results.

All classes are frozen and free of mlx, so that their instances may cross threads.
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
    """The author of a message, as chat templates name it."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"  # the result of a tool that the assistant called


class Channel(StrEnum):
    """A part of a reply: the model's reasoning or the answer."""

    REASONING = "reasoning"
    ANSWER = "answer"


class FinishReason(StrEnum):
    """The reason why a reply ended."""

    STOP = "stop"  # the model drew an end token
    LENGTH = "length"  # max_tokens, the context length or the memory limit was reached
    CANCELLED = "cancelled"  # stopped by the user or by stop_after
    ERROR = "error"  # the request failed


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyTokens:
    """The token ids of one reply, kept as drawn so that the reply is never tokenised again.

    The ids are stored as bytes, which take a tenth of the memory of a tuple: the app holds
    thousands of replies and reads the ids of few.
    """

    # Each id as 32 bits, unsigned, little endian on every machine, because data folders are moved.
    token_bytes: bytes
    # Number of ids of the reasoning with its closing marker. The ids after them are the answer.
    answer_start: int
    # Hash of the model's tokenizer. The ids are meaningless for any other tokenizer.
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
        """Token ids of the reply. Each access unpacks them."""
        return struct.unpack(f"<{self.num_tokens}I", self.token_bytes)

    @property
    def num_tokens(self) -> int:
        return len(self.token_bytes) // 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a conversation, as the engine receives it in a request."""

    role: Role
    content: str  # text without reasoning
    reasoning: str = ""
    reply: ReplyTokens | None = None  # the ids of an assistant's message, if a model generated it


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingParams:
    """Parameters for drawing the next token.

    A filter or penalty is off if its parameter is 0. The repetition penalty is off at 1.
    """

    temperature: float = 0.7  # 0 or less draws the token with the largest logit
    top_p: float = 0.95
    top_k: int = 0
    min_p: float = 0.0
    min_kept: int = 1  # lowest number of candidate tokens that min_p leaves
    # XTC ("exclude top choices"): with this probability, a draw excludes all tokens that are at
    # least as likely as xtc_threshold, except the least likely of these tokens.
    xtc_probability: float = 0.0
    xtc_threshold: float = 0.1  # 0 to 0.5
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ForcedReply:
    """A given reply, fed token by token in place of sampled tokens. For benchmarks and tests."""

    text: str
    reasoning: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request for the assistant's next message of a conversation, or for the rest of a message.

    If messages end with a reply, the request continues this reply: its token ids are fed unchanged,
    and the drawn tokens follow them.
    """

    request_id: RequestId
    conversation_id: ConversationId
    # All messages of the shown branch, up to a user message or the reply to continue.
    messages: tuple[Message, ...]
    # Indices of the messages that the user added or changed. Fed tokens of these messages count as
    # read in PromptPlan, fed tokens of the other messages as replayed.
    new_messages: frozenset[int]
    sampling: SamplingParams = field(default_factory=SamplingParams)
    max_tokens: int = 4096  # limit of tokens to draw, without a continued reply's earlier part
    thinking: bool | None = None  # None: the default of the chat template
    keep_thinking: bool = False  # keep earlier reasoning in the prompt, if the template supports it
    forced: ForcedReply | None = None
    stop_after: int | None = None  # cancel after this many delivered tokens
    record_logits: bool = False  # keep the logits of every draw for a later Verify command
    # Leave no trace in the prefix cache: use separate live caches, publish nothing, evict nothing.
    # Benchmarks use this for cold runs.
    side: bool = False


class ReasonKind(StrEnum):
    """The reason why tokens of a prompt had to be fed instead of being restored from the cache."""

    NEW_CONVERSATION = "new_conversation"  # the conversation was never read
    NEW_MESSAGE = "new_message"  # the request adds this message
    EDITED_MESSAGE = "edited_message"  # the text of a message changed
    SYSTEM_CHANGED = "system_changed"
    OPTIONS_CHANGED = "options_changed"  # Request.thinking or keep_thinking changed
    REASONING_DROPPED = "reasoning_dropped"  # the template omits reasoning of earlier replies
    REPLY_RENDERED = "reply_rendered"  # the template renders a reply differently than before
    SNAPSHOT_EVICTED = "snapshot_evicted"  # K/V are cached, the snapshot was evicted
    STATE_EVICTED = "state_evicted"  # K/V and snapshot were evicted
    MODEL_RELOADED = "model_reloaded"  # the model was unloaded since, with its cached state
    FAULT = "fault"  # a stored resume point was found wrong and removed


# A dict look-up takes a fifth of the time of ReasonKind(value), and a long conversation has
# thousands of reasons.
_REASON_KINDS = {kind.value: kind for kind in ReasonKind}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """The reason why a range of prompt tokens had to be fed."""

    kind: ReasonKind
    num_tokens: int  # length of the range
    at: int  # first token of the range, counted from the prompt's start
    text: str  # a sentence for the user

    @classmethod
    def of(cls, kind: str, *, num_tokens: int, at: int, text: str) -> Reason:
        """Create a reason from stored values.

        Raises:
            KeyError: kind is not a value of ReasonKind.
        """
        return cls(kind=_REASON_KINDS[kind], num_tokens=num_tokens, at=at, text=text)


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptPlan:
    """The origin of a prompt's tokens: restored + replayed + read = prompt_tokens."""

    prompt_tokens: int  # length of the prompt in tokens
    restored: int  # tokens whose state came from the cache
    replayed: int  # fed tokens of messages that are not new
    read: int  # fed tokens of new messages and of the template's text after them
    matched: int = 0  # tokens whose K/V are cached. matched > restored if a snapshot is missing
    reasons: tuple[Reason, ...] = ()  # for all fed tokens, in the order of the prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Durations and token counts of one finished request, measured on the engine thread."""

    plan: PromptPlan
    output_tokens: int  # tokens drawn by this request
    queue_ms: float  # from submission to the start
    render_ms: float  # applying the chat template and tokenising the prompt
    restore_ms: float  # restoring the cached part of the prompt
    prefill_ms: float  # from the end of the restoration to the first delivered token
    ttft_ms: float  # time to first token: from submission to the first delivered token
    total_ms: float  # from submission to the end of the reply
    decode_tok_s: float  # tokens per second after the first; 0 if there is no second token
    cache_bytes: int  # size of the prefix cache at the end of the reply


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """Properties of a loaded model."""

    path: str  # of the model folder
    name: str
    model_type: str  # mlx-lm's name of the architecture
    context_len: int  # highest number of tokens of prompt and reply together
    weight_bytes: int
    has_thinking: bool  # the model writes reasoning between markers
    can_keep_thinking: bool  # the template has an option that keeps earlier reasoning in the prompt
    tokenizer_hash: str
    template_hash: str
    kv_bytes_per_token: int  # attention K/V of one token in all layers
    snapshot_bytes: int  # size of one snapshot of all layers, 0 if the model needs none
    default_sampling: SamplingParams  # as the model folder recommends


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheStatistics:
    """Memory use of the prefix cache, and counters of events since its creation."""

    kv_bytes: int  # K/V that nodes of the tree own
    snapshot_bytes: int
    hot_bytes: int  # of live caches, with the K/V that they lend to nodes
    total_bytes: int  # kv_bytes + snapshot_bytes + hot_bytes
    budget_bytes: int
    num_nodes: int
    num_snapshots: int
    num_hot: int  # live caches that no request is using
    matches: int  # prompts of which at least one token was restored
    evictions: int  # nodes, snapshots, logits and live caches evicted for room
    restore_faults: int  # resume points and live caches found wrong while restoring, and removed
    copied_bytes: int  # K/V bytes that had to be copied
    audits: int  # resume points that were recomputed and compared
    audit_faults: int  # audited resume points that differed and were removed


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
    """The comparison of a finished request with two runs of the bare model on empty caches.

    The naive run reads the whole prompt in one pass. The replay repeats the engine's own passes.
    A difference is the largest absolute difference between the engine's logits and those of the
    run, divided by the standard deviation of the run's logits.
    """

    prompt_equal: bool  # the prompt's token ids have no fault
    equal: bool  # the naive run agrees within the tolerance and draws the same tokens
    max_difference: float  # difference from the naive run, above 0 because of rounding
    replay_difference: float  # difference from the replay, 0 if every bit is equal
    first_difference: int | None  # index of the first output token that disagrees, None if none
    detail: str = ""  # the fault in the prompt, or the reason why nothing was compared


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """An error in words for the user."""

    title: str  # what happened
    cause: str  # why it happened
    advice: str  # what the user can do
    details: str = ""  # for the log and bug reports

    @override
    def __str__(self) -> str:
        return " ".join(part for part in (self.title, self.cause, self.advice) if part)
