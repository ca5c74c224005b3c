"""The protocol between app and engine: commands that the app sends, events that the engine emits.

All classes are frozen dataclasses or enums, so that their instances can be passed to another
thread. Commands go through a queue to the engine thread (commands.py builds most of them, engine.py
Want and Shutdown). Events are passed to the callback that the app gave to `engine.engine.Engine`.
The unions `Command` and `Event` list all command and event classes. questions.py has the questions
that an Ask command puts.

A request causes these events, in this order: RequestQueued (again when its position or the reason
for its wait changes), RequestStarted, PrefillProgress, TextDelta, and one RequestFinished or
RequestFailed. A LoadModel command causes ModelLoading events, then one ModelLoaded, ModelFailed or
ModelUnloaded.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum

from engine.model_titles import model_title
from engine.problem import Problem
from engine.questions import Answer, Ask, NextPrompt, Preview, QuestionId
from engine.types import (
    Channel,
    ConversationId,
    FinishReason,
    ReplyTokens,
    Request,
    RequestId,
    SamplingParams,
    TokenScore,
)
from engine.usage import PromptPlan, Usage
from engine.wanted import Wanted


@dataclass(frozen=True, slots=True)
class LoadModel:
    """Load the model folder at path. If a model is already loaded, unload it first."""

    path: str
    kv_bits: int | None = None  # bits per attention K/V value, 4 or 8; None: as configured
    context_len: int | None = None  # a lower limit than the model's own; None: the model's own


@dataclass(frozen=True, slots=True)
class UnloadModel:
    """Drop the loaded model and the cached state of all conversations in memory."""

    until_needed: bool = False  # True: a waiting request, or the next one, loads the model again


@dataclass(frozen=True, slots=True)
class Submit:
    """Add a request to the queue of waiting requests."""

    request: Request
    submitted_at: float  # Value of time.perf_counter() when the sender created the command


@dataclass(frozen=True, slots=True)
class Cancel:
    """Stop a waiting or running request.

    A running request finishes with the text generated so far, and its cached state is kept. A
    waiting request fails.
    """

    request_id: RequestId


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadAhead(NextPrompt):
    """Feed a conversation's next prompt while the engine is idle, as far as the prompt is known.

    A newer command for the same conversation replaces the older one. A newer command with empty
    `messages` only cancels the older command.
    """

    # True: only read the prompt's state from disk into free memory. Nothing is fed or evicted.
    fetch_only: bool = False
    # True: less valuable state is evicted if there is no room, as for the shown conversation.
    displaces: bool = False


@dataclass(frozen=True, slots=True)
class Withdraw:
    """Withdraw a question for a preview, a title or a length, if it is not answered yet.

    The answer is then a Problem. Other questions are not withdrawn: they are answered at once, or
    once the engine is idle. The state of a preview, answered or not, is freed once no request waits
    or runs.
    """

    question_id: QuestionId


@dataclass(frozen=True, slots=True)
class Want:
    """Replace the settings of the engine. It acts on the differences to the settings before."""

    wanted: Wanted


@dataclass(frozen=True, slots=True)
class Shutdown:
    """Cut off running requests, stop idle work, then end the engine thread."""

    # time.monotonic() until which cached state is written. None: EngineConfig.disk_close_s decides.
    until: float | None = None


Command = Want | LoadModel | UnloadModel | Submit | Cancel | ReadAhead | Ask | Withdraw | Shutdown


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
    # Sampling parameters that the model folder recommends, and the app's own in place of the
    # others.
    default_sampling: SamplingParams
    # True if a multi-token prediction head can draft the model's next tokens.
    has_head: bool = False
    # Sentence for the user: why the head that was found is not used. "" if there is none, or it is.
    head_fault: str = ""
    # True if the chat template writes Request.tools into the prompt.
    can_use_tools: bool = False
    # Texts before and after a tool call in a reply. Both "" if the form of calls is not known;
    # call_end alone is "" if a call ends with the reply.
    call_start: str = ""
    call_end: str = ""
    sees: bool = False  # True if the model accepts pictures

    @property
    def title(self) -> str:
        """The name on screen."""
        return model_title(self.name)


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


class LoadStage(StrEnum):
    """A stage of loading a model."""

    IMPORTING = "importing"  # The engine thread imports mlx and mlx-lm, once after its start.
    CONNECTING = "connecting"  # the stages of a divided model start and connect with each other
    LOADING = "loading"  # the engine reads the model's weights into memory
    CHECKING = "checking"  # the weights are in memory; the engine tests the model and its template


@dataclass(frozen=True, slots=True)
class ModelLoading:
    """Progress of loading a model."""

    path: str  # path of the model folder; empty while libraries are imported
    stage: LoadStage
    fraction: float  # share of the weights that is loaded, 0 to 1
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

    # True if the next request loads the model again: no request came for too long, or the command
    # to unload it said so.
    loads_again: bool = False


class WaitReason(StrEnum):
    """The reason why a submitted request is neither read nor answered."""

    TURN = "turn"  # an earlier request of the same conversation has not ended
    READING = "reading"  # the prompt of another conversation is read first
    ANSWERS = "answers"  # the engine already answers its maximum number of requests
    MEMORY = "memory"  # the running answers leave too little memory


@dataclass(frozen=True, slots=True)
class RequestQueued:
    """A waiting request got a new position in the queue, or the reason for its wait has changed.

    A request that has started gets this event too, if another prompt is read before its own.
    """

    request_id: RequestId
    ahead: int  # position in the queue: 1 for the request that starts next
    reason: WaitReason = WaitReason.TURN
    behind: ConversationId | None = None  # the conversation that is read first, if one is


@dataclass(frozen=True, slots=True)
class RequestStarted:
    """A request left the queue, and the cached part of its prompt was restored."""

    request_id: RequestId
    plan: PromptPlan  # number of restored tokens and number of tokens left to feed
    restore_ms: float  # milliseconds that the restoration took


@dataclass(frozen=True, slots=True)
class PrefillProgress:
    """Progress of feeding the part of a prompt that was not restored."""

    request_id: RequestId
    done: int  # number of tokens fed so far
    total: int  # number of tokens to feed in total
    eta_s: float | None  # estimated seconds left, None if unknown


@dataclass(frozen=True, slots=True)
class TextDelta:
    """New text at the end of a reply."""

    request_id: RequestId
    channel: Channel
    text: str
    # Number of tokens that the request has generated so far, including the tokens of this text.
    num_tokens: int


@dataclass(frozen=True, slots=True)
class RequestFinished:
    """A request ended with a usable reply, which is complete or was stopped early.

    The fields describe the whole reply. If the request continued a cut-off reply, the fields
    include the earlier part of this reply.
    """

    request_id: RequestId
    reason: FinishReason
    content: str  # text of the answer, without reasoning
    reasoning: str
    reply: ReplyTokens
    usage: Usage
    # Token ids of the prompt. If the request continued a cut-off reply, the prompt ends with the
    # earlier part of this reply.
    prompt_ids: tuple[int, ...]
    # The tokens of the answer that this request generated, if it asked for them by
    # Request.num_likeliest
    scores: tuple[TokenScore, ...] = ()

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

    READ_AHEAD = "read_ahead"  # feed the beginning of a conversation's next prompt
    DRAFT = "draft"  # feed a message that the user is still typing
    PREVIEW = "preview"  # write the beginning of an answer that is not requested yet
    TITLE = "title"  # write a title of a conversation
    AUDIT = "audit"  # Recompute the state at a resume point and compare it with the stored state.

    @property
    def is_reading(self) -> bool:
        """True for work that feeds the next prompt of a conversation."""
        return self in (IdleKind.READ_AHEAD, IdleKind.DRAFT)


@dataclass(frozen=True, slots=True)
class IdleWorking:
    """Progress of the running idle job."""

    conversation_id: ConversationId | None  # None for an audit
    kind: IdleKind
    done: int  # number of tokens fed so far
    total: int  # number of tokens to feed in total
    num_cached: int = 0  # number of tokens of the prompt that were cached before
    reads_pictures: bool = False  # True if some of the tokens stand for pictures


@dataclass(frozen=True, slots=True)
class IdleStopped:
    """The idle job of the last IdleWorking event has ended or paused."""


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer to a question, or the problem because of which there is none (questions.py)."""

    question_id: QuestionId
    answer: Answer | Problem


class PreviewStage(StrEnum):
    """The state of a preview that is not complete."""

    ANSWERS = "answers"  # it waits until no request waits or runs
    CHAT = "chat"  # it waits until its conversation is read ahead
    BATTERY = "battery"  # it waits until the machine is plugged in
    READING = "reading"  # its prompt is read
    WRITING = "writing"  # its text is written


@dataclass(frozen=True, slots=True)
class PreviewProgress:
    """A new state or new text of a preview. If it waits, its text so far is discarded."""

    question_id: QuestionId
    stage: PreviewStage
    num_to_read: int = 0  # tokens that are left to read; 0 in other stages than READING
    preview: Preview = Preview()  # noqa: RUF009 (the value is frozen)


@dataclass(frozen=True, slots=True)
class StagesReported:
    """The stages of a divided model, rank 0 first. Empty once they have ended."""

    stages: tuple[StageState, ...]


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
    | Answered
    | PreviewProgress
    | StagesReported
)
