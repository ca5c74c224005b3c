"""The protocol between app and engine: commands that the app sends, events that the engine emits.

All classes are frozen dataclasses or enums, so that their instances may cross threads. Commands go
through a queue to the engine thread (commands.py builds them). Events are passed to the callback
that the app gave to `engine.engine.Engine`. The unions `Command` and `Event` list all of them.

The events of a request are, in order: RequestQueued (again when its position changes),
RequestStarted, PrefillProgress, TextDelta, and one RequestFinished or RequestFailed. After
LoadModel follow ModelLoading events, then ModelLoaded, ModelFailed or ModelUnloaded.
"""

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
    """Load the model folder at path. A loaded model is unloaded first."""

    path: str


@dataclass(frozen=True, slots=True)
class UnloadModel:
    """Drop the loaded model and the cached state of all conversations."""


@dataclass(frozen=True, slots=True)
class Submit:
    """Queue a request."""

    request: Request
    submitted_at: float  # time.perf_counter() when the sender created the command


@dataclass(frozen=True, slots=True)
class Cancel:
    """Stop a waiting or running request.

    A running one finishes with the text so far, and its cached state is kept. A waiting one fails.
    """

    request_id: RequestId


@dataclass(frozen=True, slots=True)
class Forget:
    """Drop the cached state of a conversation. Its messages are not touched."""

    conversation_id: ConversationId


@dataclass(frozen=True, slots=True)
class Pin:
    """Pin or unpin a conversation: pinned state is evicted after everything unpinned."""

    conversation_id: ConversationId
    pinned: bool


@dataclass(frozen=True, slots=True)
class Show:
    """Give priority to the requests and idle work of the conversation that the window shows."""

    conversation_id: ConversationId | None  # None: no conversation is shown


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadAhead:
    """Feed a conversation's next prompt while the engine is idle, as far as the prompt is known.

    A newer command for the same conversation replaces the older one.

    messages end with a reply, or with the draft of a user message. After a reply the prompt is fed
    up to where the next message's text will begin. A draft is fed as far as further typing cannot
    change its token ids. Empty messages cancel the older command.
    """

    conversation_id: ConversationId
    messages: tuple[Message, ...]
    is_draft: bool = False  # the last message is still being typed
    thinking: bool | None = None  # as in Request
    keep_thinking: bool = False  # as in Request


@dataclass(frozen=True, slots=True)
class SetIdleWork:
    """Switch idle work on or off. A running idle job stops within one prefill chunk."""

    enabled: bool


@dataclass(frozen=True, slots=True)
class AwaitIdle:
    """Request an IdleReached event, emitted once no request and no read-ahead is left."""


class EvictWhat(StrEnum):
    """A part of the prefix cache that can be evicted."""

    HOT = "hot"  # the live caches of conversations; their tokens stay in the tree as copies
    SNAPSHOTS = "snapshots"  # the auxiliary states at resume points
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Evict:
    """Evict a part of the cached state at once. Only the command line and benchmarks use this."""

    what: EvictWhat


@dataclass(frozen=True, slots=True)
class Verify:
    """Compare a finished request, which had record_logits set, with the bare model."""

    request_id: RequestId
    messages: tuple[Message, ...]  # the request's branch as the user sees it


@dataclass(frozen=True, slots=True)
class ReportStatistics:
    """Request a StatisticsReported event."""

    checks_invariants: bool = False  # check the cache's invariants first: some milliseconds


@dataclass(frozen=True, slots=True)
class Shutdown:
    """Finish running requests and idle work, then end the engine thread."""


CacheCommand = Forget | Pin | Evict | ReportStatistics
IdleCommand = Show | ReadAhead | SetIdleWork | AwaitIdle
Command = LoadModel | UnloadModel | Submit | Cancel | Verify | Shutdown | CacheCommand | IdleCommand


class LoadStage(StrEnum):
    """A stage of loading a model."""

    IMPORTING = "importing"  # mlx and mlx-lm are imported, once after the start
    READING = "reading"  # the model's weights are read into memory


@dataclass(frozen=True, slots=True)
class ModelLoading:
    """Progress of loading a model."""

    path: str  # of the model folder; empty while libraries are imported
    stage: LoadStage
    fraction: float  # loaded share of the weights, 0 to 1
    loaded_bytes: int
    total_bytes: int

    @property
    def is_importing(self) -> bool:
        """True while the engine imports its libraries, before it loads the first model."""
        return self.stage is LoadStage.IMPORTING


@dataclass(frozen=True, slots=True)
class ModelLoaded:
    """A model was loaded. Requests are answered from now on."""

    facts: ModelFacts


@dataclass(frozen=True, slots=True)
class ModelFailed:
    """A model could not be loaded. No model is loaded now."""

    path: str
    problem: Problem


@dataclass(frozen=True, slots=True)
class ModelUnloaded:
    """The model was unloaded, or a newer command ended its loading."""


@dataclass(frozen=True, slots=True)
class RequestQueued:
    """A waiting request got a new position in the queue."""

    request_id: RequestId
    ahead: int  # position in the queue: 1 for the request that starts next


@dataclass(frozen=True, slots=True)
class RequestStarted:
    """A request started: the cached part of its prompt is restored."""

    request_id: RequestId
    plan: PromptPlan  # numbers of restored tokens and of tokens left to feed
    restore_ms: float  # milliseconds that the restoration took


@dataclass(frozen=True, slots=True)
class PrefillProgress:
    """Progress of feeding the part of a prompt that was not restored."""

    request_id: RequestId
    done: int  # tokens fed so far
    total: int  # tokens to feed altogether
    eta_s: float | None  # estimated seconds left, None if unknown


@dataclass(frozen=True, slots=True)
class TextDelta:
    """New text at the end of a reply."""

    request_id: RequestId
    channel: Channel
    text: str
    num_tokens: int  # tokens that the request generated so far, this text's included


@dataclass(frozen=True, slots=True)
class RequestFinished:
    """A request ended with a usable reply, complete or stopped.

    The fields hold the whole reply, also if the request continued an earlier part of it.
    """

    request_id: RequestId
    reason: FinishReason
    content: str  # text of the answer, without reasoning
    reasoning: str
    reply: ReplyTokens
    usage: Usage
    prompt_ids: tuple[int, ...]  # token ids of the prompt, at its end those of a continued reply

    @property
    def output_ids(self) -> tuple[int, ...]:
        """Token ids that this request generated, without the earlier part of a continued reply."""
        return self.reply.token_ids[self.reply.num_tokens - self.usage.output_tokens :]


@dataclass(frozen=True, slots=True)
class RequestFailed:
    """A request ended without a usable reply. Other requests are not affected."""

    request_id: RequestId
    problem: Problem


class IdleKind(StrEnum):
    """A kind of work that the engine does while no request waits or runs."""

    READ_AHEAD = "read_ahead"  # feeds the beginning of a conversation's next prompt
    DRAFT = "draft"  # feeds a message that is still being typed
    AUDIT = "audit"  # recomputes the state at a resume point and compares it with the stored state


@dataclass(frozen=True, slots=True)
class IdleWorking:
    """Progress of the running idle job."""

    conversation_id: ConversationId | None  # None for an audit
    kind: IdleKind
    done: int  # tokens fed so far
    total: int  # tokens to feed altogether


@dataclass(frozen=True, slots=True)
class IdleStopped:
    """The idle job that the last IdleWorking event reported has ended or paused."""


class CommandResult:
    """Base class of result events of commands: IdleReached, Verified, StatisticsReported."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class IdleReached(CommandResult):
    """The result of AwaitIdle: no request and no read-ahead is left."""


@dataclass(frozen=True, slots=True)
class Verified(CommandResult):
    """The result of Verify: the comparison of a finished request with the bare model."""

    request_id: RequestId
    result: CheckResult


@dataclass(frozen=True, slots=True)
class StatisticsReported(CommandResult):
    """The result of ReportStatistics, Evict and Forget: the state of the prefix cache."""

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
