"""Questions to the engine: what a sender can ask, and the type of each answer. No mlx.

    Ask(question)     sender -> engine
    Answered(answer)  engine -> sender, exactly once for each Ask (events.py)

The answer has the type that the class of the question names, or it is a Problem: no model is
loaded, an error was raised, the question was withdrawn, or its engine has ended. An engine thread
that takes the place of another gets the open questions again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from itertools import count
from typing import Generic, NewType, TypeVar

from engine.cache_figures import CacheReport, HeldChats
from engine.problem import Problem, ProblemKind
from engine.types import ConversationId, Message, ReplyTokens, Request, RequestId, ToolCall
from engine.usage import PromptPlan

A_co = TypeVar("A_co", covariant=True)

QuestionId = NewType("QuestionId", int)
_ids = count(1)


class Question(Generic[A_co]):
    """Base class of the questions. `A_co` is the type of the answer."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NextPrompt:
    """The known beginning of a conversation's next prompt.

    It ends with a reply or with the draft of a user message. If it ends with a reply, the prompt is
    known up to the position where the next user message will begin. If it ends with a draft, the
    tokens that further typing cannot change are known.
    """

    conversation_id: ConversationId
    messages: tuple[Message, ...] = ()  # empty if nothing is known
    is_draft: bool = False  # True if the last message is a draft that the user is still typing
    thinking: bool | None = None  # same meaning as Request.thinking
    keep_thinking: bool = False  # same meaning as Request.keep_thinking
    tools: str = ""  # same meaning as Request.tools


@dataclass(frozen=True, slots=True, kw_only=True)
class TokensCounted:
    """The answer to CountTokens."""

    num_tokens: int  # length of the prompt, or of the known beginning of the next prompt
    num_cached: int  # number of these tokens whose state is cached, so they need not be fed
    num_on_disk: int = 0  # number of the cached tokens whose state would be read from disk
    is_busy: bool = (
        False  # True if requests of any client were running, so that reading takes longer
    )
    # The plan that the request would get now; None if the question was about a NextPrompt.
    plan: PromptPlan | None = None
    # The problem of a request with this prompt, which is too long for the model; None if it fits.
    refusal: Problem | None = None
    # Number of tokens up to the start of the last message's text, then up to the end of each of its
    # parts (Message.part_ends). Empty if the last message has no parts.
    part_ends: tuple[int, ...] = ()

    @property
    def num_too_long(self) -> int:
        """Length of the refused prompt, or of its newest message if it alone is refused, else 0."""
        return 0 if self.refusal is None else self.refusal.num_tokens

    @property
    def is_text_too_long(self) -> bool:
        """True if the newest message alone is refused."""
        return self.refusal is not None and self.refusal.kind is ProblemKind.TEXT_TOO_LONG


@dataclass(frozen=True, slots=True)
class PicturesCounted:
    """The answer to CountPictures."""

    num_tokens: tuple[int, ...]  # tokens that a picture of each size takes, in the order asked


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """The answer to MakePreview: the beginning of an answer, which a request can continue.

    A preview that was refused has a refusal and nothing else.
    """

    content: str = ""  # text of the answer, without reasoning
    reasoning: str = ""
    reply: ReplyTokens | None = None  # the tokens that were drawn; None before the first one
    is_whole: bool = False  # True if the model ended the reply itself
    refusal: Problem | None = None


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
    # Hash of the engine's logits, 32 hexadecimal digits. Runs with equal bits have equal hashes. ""
    # if the check could not be carried out.
    logits_hash: str = ""
    # The replies of which the chat template shows only a part, as a sentence; "" if there are none.
    # The tokens after the missing part are fed again.
    template_cut: str = ""
    detail: str = ""  # the fault in the prompt, or the reason why the check failed


@dataclass(frozen=True, slots=True)
class CountTokens(Question[TokensCounted]):
    """Ask for the length of a conversation's next prompt, or of the prompt of a request.

    A request is not submitted. Its plan says what it would restore, replay and read if it began
    now. While requests run, these answers take at most 1 % of the time (counting.py).
    """

    prompt: NextPrompt | Request


@dataclass(frozen=True, slots=True)
class CountPictures(Question[PicturesCounted]):
    """Ask for the tokens that pictures take in a prompt, from their sizes alone.

    The answer is a Problem if the loaded model does not see pictures.
    """

    sizes: tuple[tuple[int, int], ...]  # width and height of each picture, in pixels


@dataclass(frozen=True, slots=True)
class ParseCalls(Question[tuple[ToolCall, ...]]):
    """Ask for the tool calls in a text that the loaded model wrote.

    The answer is a Problem (ToolCallError) if the text is no call in the form of the model.
    """

    text: str  # without ModelFacts.call_start and ModelFacts.call_end
    tools: str = ""  # same meaning as Request.tools; tells the types of the arguments


@dataclass(frozen=True, slots=True)
class MakeTitle(Question[str]):
    """Let the model write a title of a conversation while the engine is idle.

    The answer is the text that the model wrote. It may be empty or no title.

    The title is a side request: it adds nothing to the prefix cache and evicts nothing. A request
    interrupts it, and it then begins again. It is not made if there is no memory for it, if much
    would have to be read for it, or if the model is divided into stages. A newer question for the
    same conversation withdraws the older one.
    """

    # The messages of the conversation, and a user message that asks for a title. A title needs no
    # reasoning; `thinking` is that of the conversation.
    prompt: NextPrompt


@dataclass(frozen=True, slots=True)
class MakePreview(Question[Preview]):
    """Let the model write the beginning of the answer to a request while the engine is idle.

    The preview ends after two sentences of the reasoning or of the answer. Its tokens are those
    that the request would draw without drafts. PreviewProgress events report it until it is
    answered.

    The preview is a side request, like a title, and a request interrupts it in the same way. It is
    refused if much would have to be read for it, if there is no memory for it, or if the model is
    divided into stages. A newer question withdraws the older one.
    """

    request: Request


@dataclass(frozen=True, slots=True)
class AwaitIdle(Question[None]):
    """Ask for an answer once no request, no read-ahead, no preview and no title is left."""


@dataclass(frozen=True, slots=True)
class Verify(Question[CheckResult]):
    """Compare a finished request with runs of the model that use no cached state.

    The request must have record_logits=True.
    """

    request_id: RequestId
    # The messages from which the prompt was built, as the user sees them
    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class ReportCache(Question[CacheReport]):
    """Ask for the figures of the cache."""

    # True to check the cache's invariants first, which takes some milliseconds.
    checks_invariants: bool = False


@dataclass(frozen=True, slots=True)
class ReportChats(Question[HeldChats]):
    """Ask for the cached state of each conversation."""


@dataclass(frozen=True, slots=True)
class Forget(Question[CacheReport]):
    """Drop the cached state of a conversation. The conversation itself does not change."""

    conversation_id: ConversationId
    # False: only the state in memory, because the conversation can still be restored
    on_disk: bool = True
    # The conversation that takes over the state in memory; None: the state is dropped.
    heir: ConversationId | None = None


@dataclass(frozen=True, slots=True)
class ForgetUnknown(Question[CacheReport]):
    """Forget conversations that are not in `known`, but have state of the loaded model on disk.

    At most MOST_FORGOTTEN are forgotten, the others at the next such question.
    """

    known: frozenset[ConversationId]
    # Conversations whose ids begin with one of these are known too.
    known_prefixes: tuple[str, ...] = ()


class EvictWhat(StrEnum):
    """A part of the prefix cache that can be evicted."""

    # The live caches of conversations. The contents that are still useful are copied first, so they
    # stay in the prefix cache.
    HOT = "hot"
    SNAPSHOTS = "snapshots"  # the stored states of recurrent layers and rotating windows
    ALL = "all"


@dataclass(frozen=True, slots=True)
class MoveToDisk(Question[HeldChats]):
    """Write the cached state of conversations to disk, then drop it from memory.

    This is done while no request waits or runs, in steps, and is then answered. A conversation
    stays in memory if a part of its state cannot be written: nothing is kept on disk, or a limit is
    reached.
    """

    conversation_ids: tuple[ConversationId, ...]


@dataclass(frozen=True, slots=True)
class Evict(Question[CacheReport]):
    """Evict a part of the cached state at once. Only the command line and benchmarks use this."""

    what: EvictWhat


@dataclass(frozen=True, slots=True)
class ClearDisk(Question[CacheReport]):
    """Delete all cached state on disk, of all models. The state in memory stays."""


# Questions that are answered at once: about the loaded model, and about cached state.
ModelQuestion = CountPictures | ParseCalls | Verify
CacheQuestion = ReportCache | ReportChats | Forget | ForgetUnknown | Evict | ClearDisk
AnyQuestion = (
    CountTokens | MakeTitle | MakePreview | AwaitIdle | MoveToDisk | ModelQuestion | CacheQuestion
)
Answer = (
    TokensCounted
    | PicturesCounted
    | Preview
    | tuple[ToolCall, ...]
    | CheckResult
    | CacheReport
    | HeldChats
    | str
    | None
)


def _new_id() -> QuestionId:
    return QuestionId(next(_ids))


@dataclass(frozen=True, slots=True)
class Ask:
    """Put a question to the engine. An Answered event with the same id has the answer."""

    question: AnyQuestion
    question_id: QuestionId = field(default_factory=_new_id)
