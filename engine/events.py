"""The protocol between app and engine: frozen commands in, frozen events out."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from engine.types import (
    CacheStatistics,
    Channel,
    CheckResult,
    ConversationId,
    FinishReason,
    Message,
    ModelFacts,
    Problem,
    PromptPlan,
    ReplyTokens,
    Request,
    RequestId,
    Usage,
)


@dataclass(frozen=True, slots=True)
class LoadModel:
    """Load the model folder at path; a loaded model is unloaded first."""

    path: str


@dataclass(frozen=True, slots=True)
class UnloadModel:
    """Drop the model and all cached state."""


@dataclass(frozen=True, slots=True)
class Submit:
    """Queue a request. submitted_at is time.perf_counter() of the sender."""

    request: Request
    submitted_at: float


@dataclass(frozen=True, slots=True)
class Cancel:
    """Stop a waiting or running request; what it has committed is kept."""

    request_id: RequestId


@dataclass(frozen=True, slots=True)
class Forget:
    """Drop a conversation's cached state, never its messages."""

    conversation_id: ConversationId


@dataclass(frozen=True, slots=True)
class Pin:
    """Pin or unpin a conversation: pinned state is evicted after everything unpinned."""

    conversation_id: ConversationId
    pinned: bool


@dataclass(frozen=True, slots=True)
class Show:
    """Name the conversation on show. Its requests and idle work come first."""

    conversation_id: ConversationId | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadAhead:
    """Read ahead for a conversation while idle. Replaces an earlier command for that conversation.

    messages end with a reply (the beginning of the next turn's prompt is read), or with a user message
    that is still being typed (is_draft: it is read as far as further typing cannot change it). Empty
    messages cancel the earlier command.
    """

    conversation_id: ConversationId
    messages: tuple[Message, ...]
    is_draft: bool = False
    thinking: bool | None = None
    keep_thinking: bool = False


@dataclass(frozen=True, slots=True)
class SetIdleWork:
    """Switch idle work on or off; what is running stops within one prefill chunk."""

    enabled: bool


@dataclass(frozen=True, slots=True)
class AwaitIdle:
    """Ask for IdleReached once nothing waits, runs or is left to be read ahead."""


class EvictWhat(StrEnum):
    """A part of the prefix cache that can be evicted."""

    HOT = "hot"
    SNAPSHOTS = "snapshots"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Evict:
    """Evict cached state now. The command line and benchmarks send it."""

    what: EvictWhat


@dataclass(frozen=True, slots=True)
class Verify:
    """Compare a finished request (record_logits) with a naive run of the bare model.

    messages are the visible ones, in the order of the branch.
    """

    request_id: RequestId
    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class ReportStatistics:
    """Request a StatisticsReported event."""

    checks_invariants: bool = False  # check the cache's invariants first: some milliseconds


@dataclass(frozen=True, slots=True)
class Shutdown:
    """End the engine thread."""


CacheCommand = Forget | Pin | Evict | ReportStatistics
IdleCommand = Show | ReadAhead | SetIdleWork | AwaitIdle
Command = LoadModel | UnloadModel | Submit | Cancel | Verify | Shutdown | CacheCommand | IdleCommand


class LoadStage(StrEnum):
    """A stage of loading a model."""

    IMPORTING = "importing"  # the libraries
    READING = "reading"  # the weights


@dataclass(frozen=True, slots=True)
class ModelLoading:
    """Progress of loading a model. fraction is 0 to 1."""

    path: str
    stage: LoadStage
    fraction: float
    loaded_bytes: int
    total_bytes: int

    @property
    def is_importing(self) -> bool:
        """True while the engine's libraries are imported, before any model."""
        return self.stage is LoadStage.IMPORTING


@dataclass(frozen=True, slots=True)
class ModelLoaded:
    """The model answers from now on."""

    facts: ModelFacts


@dataclass(frozen=True, slots=True)
class ModelFailed:
    """The model could not be loaded."""

    path: str
    problem: Problem


@dataclass(frozen=True, slots=True)
class ModelUnloaded:
    """No model is loaded any more."""


@dataclass(frozen=True, slots=True)
class RequestQueued:
    """The request waits; ahead is the number of requests before it."""

    request_id: RequestId
    ahead: int


@dataclass(frozen=True, slots=True)
class RequestStarted:
    """State is restored; plan says what is left to feed."""

    request_id: RequestId
    plan: PromptPlan
    restore_ms: float


@dataclass(frozen=True, slots=True)
class PrefillProgress:
    """done of total fed tokens are processed; eta_s is the time left, None until it is known."""

    request_id: RequestId
    done: int
    total: int
    eta_s: float | None


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More text of a reply. num_tokens counts the reply's tokens so far, this delta included."""

    request_id: RequestId
    channel: Channel
    text: str
    num_tokens: int


@dataclass(frozen=True, slots=True)
class RequestFinished:
    """The reply is complete, or stopped and kept. A continued reply is reported whole."""

    request_id: RequestId
    reason: FinishReason
    content: str
    reasoning: str
    reply: ReplyTokens
    usage: Usage
    prompt_ids: tuple[int, ...]

    @property
    def output_ids(self) -> tuple[int, ...]:
        """Ids that this request generated; a continued reply has earlier ones."""
        return self.reply.token_ids[self.reply.num_tokens - self.usage.output_tokens :]


@dataclass(frozen=True, slots=True)
class RequestFailed:
    """The request ended without a usable reply; other requests are not touched."""

    request_id: RequestId
    problem: Problem


class IdleKind(StrEnum):
    """A kind of idle work."""

    READ_AHEAD = "read_ahead"  # the beginning of a conversation's next prompt
    DRAFT = "draft"  # a message that is still being typed
    AUDIT = "audit"  # a resume point is recomputed and compared


@dataclass(frozen=True, slots=True)
class IdleWorking:
    """Progress of idle work: done of total tokens are fed."""

    conversation_id: ConversationId | None
    kind: IdleKind
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class IdleStopped:
    """No idle work is running any more."""


class CommandResult:
    """The event that a command asks for: IdleReached, Verified or StatisticsReported."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class IdleReached(CommandResult):
    """The result of AwaitIdle."""


@dataclass(frozen=True, slots=True)
class Verified(CommandResult):
    """The result of Verify."""

    request_id: RequestId
    result: CheckResult


@dataclass(frozen=True, slots=True)
class StatisticsReported(CommandResult):
    """The result of ReportStatistics, Evict and Forget."""

    statistics: CacheStatistics
    broken: Problem | None = None  # the invariant that does not hold, if they were checked


Event = (
    ModelLoading
    | ModelLoaded
    | ModelFailed
    | ModelUnloaded
    | RequestQueued
    | RequestStarted
    | PrefillProgress
    | TextDelta
    | RequestFinished
    | RequestFailed
    | IdleWorking
    | IdleStopped
    | IdleReached
    | Verified
    | StatisticsReported
)
