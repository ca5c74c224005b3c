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
    """Keep a conversation's state (or no longer): it is given up after everything unpinned."""

    conversation_id: ConversationId
    pinned: bool


@dataclass(frozen=True, slots=True)
class Show:
    """Which conversation the person looks at; idle work for it comes first."""

    conversation_id: ConversationId | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadAhead:
    """Read ahead for a conversation while idle; a newer one for it takes the older one's place.

    messages end with a reply (what the next turn's prompt will begin with is read), or with a user
    message that is still being typed (is_draft: read as far as further typing can't change it).
    Without any nothing is to be read ahead any more.
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
    """Which part of the prefix cache to give up."""

    HOT = "hot"
    SNAPSHOTS = "snapshots"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Evict:
    """Give up cached state now (benchmarks, memory pressure)."""

    what: EvictWhat


@dataclass(frozen=True, slots=True)
class Verify:
    """Hold a finished request (record_logits) to a naive run of the bare model.

    messages are those that a person sees, in the order of the branch.
    """

    request_id: RequestId
    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class ReportStatistics:
    """Ask for a StatisticsReported event."""


@dataclass(frozen=True, slots=True)
class Shutdown:
    """End the engine thread."""


CacheCommand = Forget | Pin | Evict | ReportStatistics
IdleCommand = Show | ReadAhead | SetIdleWork | AwaitIdle
Command = LoadModel | UnloadModel | Submit | Cancel | Verify | Shutdown | CacheCommand | IdleCommand


class LoadStage(StrEnum):
    """What loading a model is doing."""

    IMPORTING = "importing"  # the libraries
    READING = "reading"  # the weights


@dataclass(frozen=True, slots=True)
class ModelLoading:
    """Loading goes on. fraction is 0 to 1."""

    path: str
    stage: LoadStage
    fraction: float
    loaded_bytes: int
    total_bytes: int


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
    """The reply is complete, or stopped and kept. Of one that went on, all of it is told."""

    request_id: RequestId
    reason: FinishReason
    content: str
    reasoning: str
    reply: ReplyTokens
    usage: Usage
    prompt_ids: tuple[int, ...]

    @property
    def output_ids(self) -> tuple[int, ...]:
        """What this request wrote of the reply."""
        return self.reply.token_ids[self.reply.num_tokens - self.usage.output_tokens :]


@dataclass(frozen=True, slots=True)
class RequestFailed:
    """The request ended without a usable reply; other requests are not touched."""

    request_id: RequestId
    problem: Problem


class IdleKind(StrEnum):
    """What the engine does while nobody waits."""

    READ_AHEAD = "read_ahead"  # the beginning of a conversation's next prompt
    DRAFT = "draft"  # a message that is still being typed
    AUDIT = "audit"  # a stored point is computed anew and compared


@dataclass(frozen=True, slots=True)
class IdleWorking:
    """Idle work goes on: done of total tokens are fed."""

    conversation_id: ConversationId | None
    kind: IdleKind
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class IdleStopped:
    """No idle work is running any more."""


@dataclass(frozen=True, slots=True)
class IdleReached:
    """The answer to AwaitIdle."""


@dataclass(frozen=True, slots=True)
class Verified:
    """The answer to Verify."""

    request_id: RequestId
    result: CheckResult


@dataclass(frozen=True, slots=True)
class StatisticsReported:
    """The answer to ReportStatistics and Evict."""

    statistics: CacheStatistics


ModelEvent = ModelLoading | ModelLoaded | ModelFailed | ModelUnloaded
RequestEvent = (
    RequestQueued | RequestStarted | PrefillProgress | TextDelta | RequestFinished | RequestFailed
)
IdleEvent = IdleWorking | IdleStopped | IdleReached
Event = ModelEvent | RequestEvent | IdleEvent | Verified | StatisticsReported
