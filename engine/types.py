"""Plain values that the app and the engine exchange: messages, requests, results.

All classes are frozen and do not use mlx, so that their instances can be passed between threads.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum, StrEnum
from typing import Final, NewType

from typing_extensions import override

MAX_DRAFTS: Final = 7  # highest number of drafts that one forward pass verifies

RequestId = NewType("RequestId", str)
ConversationId = NewType("ConversationId", str)


class Role(StrEnum):
    """The author of a message. The values are the names that chat templates use."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"  # author of the result of a tool call


class Channel(StrEnum):
    """A part of a reply: the model's reasoning or the answer."""

    REASONING = "reasoning"
    ANSWER = "answer"


class FinishReason(StrEnum):
    """The reason why a reply ended."""

    STOP = "stop"  # the model drew an end token
    LENGTH = "length"  # The reply reached max_tokens, the context length or the memory limit.
    CANCELLED = "cancelled"  # the user or Request.stop_after ended the reply
    ERROR = "error"  # the request failed


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyTokens:
    """The token ids of one reply, kept as drawn so that the reply is never tokenised again.

    The ids are stored as bytes, which take a tenth of the memory of a tuple. This matters because
    the app holds thousands of replies and reads the ids of only a few.
    """

    # The token ids, each as an unsigned 32-bit integer. They are little endian on every machine,
    # because the user may move the data folder to another machine.
    token_bytes: bytes
    # Number of ids at the start that belong to the reasoning and its closing marker. The other ids
    # are the answer.
    answer_start: int
    # Hash of the model's tokenizer. The ids are valid only for a tokenizer with this hash.
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
        """Token ids of the reply. Each access unpacks them from token_bytes."""
        return struct.unpack(f"<{self.num_tokens}I", self.token_bytes)

    @property
    def num_tokens(self) -> int:
        return len(self.token_bytes) // 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a conversation, as the engine receives it in a request."""

    role: Role
    content: str  # text of the message, without the reasoning
    reasoning: str = ""
    reply: ReplyTokens | None = None  # token ids, if a model generated this message; else None
    # Positions in `content` where the parts of a user message end that other versions of the
    # message are likely to share: its attached files. The cache keeps a resume point at each one.
    part_ends: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingParams:
    """Parameters for drawing the next token.

    A parameter of 0 switches its filter or penalty off. The repetition penalty is off at 1.
    """

    temperature: float = 0.7  # at 0 or below, the token with the largest logit is drawn
    top_p: float = 0.95
    top_k: int = 0
    min_p: float = 0.0
    min_kept: int = 1  # lowest number of candidate tokens that the min_p filter must leave
    # Parameters of XTC ("exclude top choices"). Among the tokens with a probability of at least
    # xtc_threshold, XTC excludes all but the least likely one. xtc_probability is the chance that
    # XTC is applied to a draw.
    xtc_probability: float = 0.0
    xtc_threshold: float = 0.1  # minimum probability of a top choice, 0 to 0.5
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ForcedReply:
    """A given reply. Its tokens are fed in place of sampled tokens, for benchmarks and tests."""

    text: str
    reasoning: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request for the next message of the assistant, or for the rest of a cut-off message.

    If messages end with a reply, the request continues this reply. The reply's token ids are fed
    unchanged, and the new tokens follow them.
    """

    request_id: RequestId
    conversation_id: ConversationId
    # All messages of the shown branch. The last one is a user message or the reply to continue.
    messages: tuple[Message, ...]
    # Indices of the messages that no model has read. In PromptPlan, fed tokens of these messages
    # count as `read`, and fed tokens of the other messages count as `replayed`.
    new_messages: frozenset[int]
    # Indices of the messages that only other models have read.
    foreign_messages: frozenset[int] = frozenset()
    # True if an earlier answer to the last message was cut off before its state was saved.
    is_unsaved: bool = False
    sampling: SamplingParams = field(default_factory=SamplingParams)
    # Highest number of tokens to draw. The earlier part of a continued reply does not count.
    max_tokens: int = 4096
    # True or False to switch reasoning on or off; None for the template's default.
    thinking: bool | None = None
    # True to keep the reasoning of earlier replies in the prompt, if the template supports it.
    keep_thinking: bool = False
    forced: ForcedReply | None = None
    # Cancel the request after this many delivered tokens; None for no limit.
    stop_after: int | None = None
    # Number of drafts that each forward pass verifies if there are as many (speculative decoding), at
    # most MAX_DRAFTS. 0: none. None: the engine chooses the number that is expected to be fastest.
    max_drafts: int | None = 0
    record_logits: bool = False  # True to keep the logits of every draw for a later Verify command
    # True to leave the prefix cache unchanged: the request uses separate live caches, adds nothing
    # to the prefix cache and evicts nothing from it. Benchmarks use this for cold runs.
    side: bool = False


class ReasonKind(StrEnum):
    """The reason why prompt tokens were fed and not restored from the cache."""

    NEW_CONVERSATION = "new_conversation"  # no model has read any message of the conversation
    NEW_MESSAGE = "new_message"  # no model has read the message
    # The message was read before, and its state is neither in memory nor on disk. The engine has no
    # record of its loss, for example because the app was started again.
    NOT_KEPT = "not_kept"
    # The answer to continue was cut off by a crash, so its tokens and its state were not saved.
    INTERRUPTED = "interrupted"
    MODEL_CHANGED = "model_changed"  # only other models have read the message
    EDITED_MESSAGE = "edited_message"  # the text of a message changed
    SYSTEM_CHANGED = "system_changed"
    OPTIONS_CHANGED = "options_changed"  # Request.thinking or Request.keep_thinking changed
    # The chat template omits the reasoning of earlier replies.
    REASONING_DROPPED = "reasoning_dropped"
    # The chat template renders an unchanged message differently than before.
    REPLY_RENDERED = "reply_rendered"
    SNAPSHOT_EVICTED = "snapshot_evicted"  # The K/V are cached, but the snapshot was evicted.
    STATE_EVICTED = "state_evicted"  # both K/V and snapshot were evicted
    # The state was evicted, and even alone it does not fit into the budget of the prefix cache.
    CHAT_TOO_LARGE = "chat_too_large"
    MODEL_RELOADED = "model_reloaded"  # the model was unloaded, which dropped its cached state
    PROMPT_END = "prompt_end"  # all but the end of a known prompt was restored
    FAULT = "fault"  # The cached state was found to be wrong, and was removed.


# Look up kinds in a dict, which takes a fifth of the time of ReasonKind(value). A long conversation
# has thousands of reasons.
_REASON_KINDS = {kind.value: kind for kind in ReasonKind}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """The reason why a range of prompt tokens had to be fed."""

    kind: ReasonKind
    num_tokens: int  # number of tokens in the range
    at: int  # index of the range's first token in the prompt
    text: str  # explanation for the user, one sentence
    is_again: bool = False  # True if the tokens had been fed before: PromptPlan.replayed

    @classmethod
    def of(
        cls, kind: str, *, num_tokens: int, at: int, text: str, is_again: bool = False
    ) -> Reason:
        """Create a reason from stored values.

        Raises:
            KeyError: kind is not a value of ReasonKind.
        """
        kind_of = _REASON_KINDS[kind]
        return cls(kind=kind_of, num_tokens=num_tokens, at=at, text=text, is_again=is_again)


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptPlan:
    """The origin of a prompt's tokens: restored + replayed + read = prompt_tokens.

    The sum is smaller in the usage of a request that was stopped while its prompt was read.
    """

    prompt_tokens: int  # number of tokens in the prompt
    restored: int  # number of tokens restored from the cache
    replayed: int  # number of fed tokens that had been fed before
    read: int  # number of fed tokens that had not been fed before
    # Number of tokens with cached K/V. It is larger than `restored` if a snapshot is missing.
    matched: int = 0
    restored_disk: int = (
        0  # number of restored tokens whose state was read from disk for this request
    )
    reasons: tuple[Reason, ...] = ()  # reasons for all fed tokens, in prompt order


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Durations and token counts of one finished request, measured on the engine thread."""

    plan: (
        PromptPlan  # If the request was stopped while its prompt was read: the part that was read.
    )
    output_tokens: int  # number of tokens that this request drew
    queue_ms: float  # milliseconds from submission to start
    render_ms: float  # milliseconds for applying the chat template and tokenising
    restore_ms: float  # milliseconds for restoring the cached part of the prompt
    prefill_ms: float  # milliseconds from the restoration to the first delivered token
    ttft_ms: float  # time to first token: milliseconds from submission to the first delivered token
    total_ms: float  # milliseconds from submission to the end of the reply
    # Tokens per second, counted after the first token. 0 if there is no second token.
    decode_tok_s: float
    cache_bytes: int  # size of the prefix cache when the reply ended
    passes: int = 0  # number of forward passes after the prompt
    drafted_tokens: int = 0  # number of drafts that these passes verified
    accepted_tokens: int = 0  # number of drafts that the model confirmed
    disk_ms: float = 0.0  # milliseconds for reading cached state from disk, a part of restore_ms
    written_bytes: int = 0  # bytes of cached state written to disk since the model was loaded

    def delayed(self, delay_ms: float) -> Usage:
        """Return the usage as measured from a point in time `delay_ms` before the submission."""
        return replace(
            self,
            queue_ms=self.queue_ms + delay_ms,
            ttft_ms=self.ttft_ms + delay_ms,
            total_ms=self.total_ms + delay_ms,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """Properties of a loaded model."""

    path: str  # path of the model folder
    name: str
    model_type: str  # name of the architecture in mlx-lm
    context_len: int  # highest number of tokens in prompt and reply together
    weight_bytes: int
    has_thinking: bool  # True if the model writes reasoning between markers
    # True if the chat template has an option that keeps earlier reasoning in the prompt.
    can_keep_thinking: bool
    tokenizer_hash: str
    template_hash: str
    kv_bytes_per_token: int  # bytes that one token's attention K/V take in all layers
    snapshot_bytes: int  # bytes of one snapshot of all layers, 0 if the model needs none
    default_sampling: SamplingParams  # sampling parameters that the model folder recommends
    # True if a multi-token prediction head can draft the model's next tokens.
    has_head: bool = False
    # Sentence for the user: why the head that was found is not used. "" if there is none, or it is.
    head_fault: str = ""


class StagePhase(IntEnum):
    """The progress of one stage of a model that is divided over several processes or Macs."""

    STARTING = 0  # no sign of life yet
    HERE = 1  # its process runs
    LOADING = 2  # it connects with the others, and reads its weights
    READY = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class StageState:
    """One stage of a model that is divided over several processes or Macs."""

    name: str  # name of the host
    phase: StagePhase
    num_layers: int = 0  # layers that the stage holds, 0 until they are known
    loaded_bytes: int = 0
    total_bytes: int = 0  # bytes of its own weights, 0 until they are known
    memory_bytes: int = 0  # memory of its machine, 0 until it is known
    process_bytes: int = 0  # resident memory of its process


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheStatistics:
    """Memory use of the prefix cache, and counters of events since the cache was created."""

    kv_bytes: int  # bytes of K/V arrays that belong to tree nodes, outside of live caches
    snapshot_bytes: int
    hot_bytes: int  # bytes of live caches, including K/V that tree nodes reference
    total_bytes: int  # kv_bytes + snapshot_bytes + hot_bytes
    budget_bytes: int
    num_conversations: int  # number of conversations with state in memory
    num_nodes: int
    num_snapshots: int
    num_hot: int  # number of live caches that no request is using
    matches: int  # number of prompts with at least one restored token
    evictions: int  # number of nodes, snapshots, logits and live caches evicted to make room
    # Number of cached states that were removed because a restore found them wrong.
    restore_faults: int
    copied_bytes: int  # number of K/V bytes that had to be copied
    audits: int  # number of stored states that were recomputed and compared
    audit_faults: int  # number of audits that found a wrong state, which was removed
    disk_bytes: int = 0  # size of the cached state of all models on disk
    disk_model_bytes: int = 0  # the part of disk_bytes that belongs to the loaded model
    disk_records: int = 0  # number of files of the loaded model
    disk_conversations: int = 0  # number of conversations with state on disk, for the loaded model
    disk_written_bytes: int = 0  # bytes written to disk since the model was loaded
    disk_written_today_bytes: int = 0
    disk_budget_bytes: int = 0  # highest size of all cached state on disk
    disk_damaged: int = 0  # number of files that could not be used and were removed
    disk_problem: str | None = None  # why nothing is kept on disk any more, as one sentence


NOTHING_CACHED = CacheStatistics(
    kv_bytes=0,
    snapshot_bytes=0,
    hot_bytes=0,
    total_bytes=0,
    budget_bytes=0,
    num_conversations=0,
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
    """The comparison of a finished request with two runs of the model on empty caches.

    The naive run reads the whole prompt in one pass. The replay repeats the engine's own passes.
    Each run's logits are compared with the engine's logits. A difference is the largest absolute
    difference, divided by the standard deviation of the run's logits.
    """

    # True if the check of the prompt's token ids found no fault. If the chat template shows only a
    # part of a reply, the prompt cannot have all ids of the reply, and this is no fault.
    prompt_equal: bool
    equal: bool  # True if the naive run's logits are within the tolerance and give the same tokens
    max_difference: float  # Difference from the naive run. It is above 0 because of rounding.
    replay_difference: float  # difference from the replay, 0 if every bit is equal
    first_difference: int | None  # index of the first output token that differs, or None
    # Hash of the engine's logits, 32 hexadecimal digits. Runs with equal bits have equal hashes. "" if
    # the check could not be carried out.
    logits_hash: str = ""
    # The replies of which the chat template shows only a part, as a sentence; "" if there are none.
    # The tokens after the missing part are fed again.
    template_cut: str = ""
    detail: str = ""  # the fault in the prompt, or the reason why the check failed


class ProblemKind(StrEnum):
    """Kinds of problems that the app treats differently. Its words are not compared for that."""

    OTHER = "other"
    NO_MODEL = "no model"  # a model folder cannot be used
    CONTEXT_FULL = "context full"  # a chat is too long for the model
    TEXT_TOO_LONG = "text too long"  # a new message alone is too long for the model
    STOPPED = "stopped"  # the user stopped the work, so there is nothing to show


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """The description of an error in words for the user."""

    title: str  # what happened
    cause: str  # why it happened
    advice: str  # what the user can do
    details: str = ""  # technical details for the log and bug reports
    kind: ProblemKind = ProblemKind.OTHER
    num_tokens: int = 0  # length of a prompt that exceeds the context; 0: another problem

    @override
    def __str__(self) -> str:
        return " ".join(part for part in (self.title, self.cause, self.advice) if part)
