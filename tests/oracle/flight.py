"""A request in progress, and the checks that are made when it finishes.

The harness (harness.py) keeps a `Flight` for each request that it submits, and adds the
streamed text to it. When the request finishes, `Flight.check` asserts that the final text is the
streamed text, and that the token counts and the plan agree with each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from app.conversation.actions import Turn
from engine.events import RequestFinished
from engine.types import (
    Channel,
    ConversationId,
    FinishReason,
    ForcedReply,
    Message,
    Request,
    RequestId,
    Role,
    SamplingParams,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class How:
    """The options of a request for a reply."""

    sampling: SamplingParams = field(default_factory=SamplingParams)
    max_tokens: int = 4
    thinking: bool | None = None
    keep_thinking: bool = False
    forced: ForcedReply | None = None  # a given reply in place of drawn tokens
    stop_after: int | None = None  # stop the reply after this many tokens
    max_drafts: int | None = 0  # as in Request
    is_checked: bool = True  # True if the answer is compared with the bare model's answer

    def ask(
        self,
        name: str,
        chat: str,
        messages: tuple[Message, ...],
        new_messages: Iterable[int],
        *,
        side: bool,
    ) -> Request:
        return Request(
            request_id=RequestId(name),
            conversation_id=ConversationId(chat),
            messages=messages,
            new_messages=frozenset(new_messages),
            sampling=self.sampling,
            max_tokens=self.max_tokens,
            thinking=self.thinking,
            keep_thinking=self.keep_thinking,
            forced=self.forced,
            stop_after=self.stop_after,
            max_drafts=self.max_drafts,
            record_logits=self.is_checked,
            side=side,
        )


@dataclass(slots=True, eq=False)
class Flight:
    """A request in progress, and the text that was streamed for it so far."""

    request: Request
    # The shown messages. They end with the reply that is continued, or with the user's message.
    visible: tuple[Message, ...]
    turn: Turn | None  # None for a side request
    is_fresh: bool  # True if the newest message begins differently from all earlier ones
    is_started: bool = False
    # Empty until the request starts. Stays empty if the request runs while a test plants faults.
    prompt_ids: tuple[int, ...] = ()
    # Number of leading prompt tokens that were processed or cached before the request started.
    fork: int = 0
    tail: int = 0  # index of the first token of the prompt's generation tail
    # True if the cache evicted state after the request started. It may be state of this request.
    has_lost: bool = False
    # Key: id() of a list of caches. Value: number of tokens fed into it before the request started.
    fed_before: Counter[int] = field(default_factory=Counter[int])
    streamed: dict[Channel, str] = field(default_factory=lambda: dict.fromkeys(Channel, ""))

    def __post_init__(self) -> None:
        begun = self.begun
        if begun is not None:
            # A reply that was stopped inside a character ends with U+FFFD. The continued reply
            # streams the whole character.
            self.streamed[Channel.ANSWER] = begun.content.rstrip("\N{REPLACEMENT CHARACTER}")
            self.streamed[Channel.REASONING] = begun.reasoning.rstrip("\N{REPLACEMENT CHARACTER}")

    @property
    def begun(self) -> Message | None:
        """The reply that this request continues, without the new text. None for a new reply."""
        last = self.visible[-1]
        return last if last.role is Role.ASSISTANT else None

    @property
    def chat(self) -> str:
        return str(self.request.conversation_id)

    def check(self, finished: RequestFinished) -> None:
        """Assert that the final values agree with the streamed text and with each other."""
        thought = self.streamed[Channel.REASONING]
        if self.begun is None:
            assert thought.rstrip("\n") == finished.reasoning
        else:
            assert _without_lines(thought) == _without_lines(finished.reasoning)
        # Blanks before a thought are streamed as answer, because the thought is not recognised yet.
        blanks = self.streamed[Channel.ANSWER].removesuffix(finished.content)
        assert not blanks.strip()
        assert self.streamed[Channel.ANSWER] == blanks + finished.content
        begun = self.begun.reply if self.begun else None
        num_begun = begun.num_tokens if begun else 0
        num_tokens = finished.reply.num_tokens - num_begun
        assert finished.usage.output_tokens == num_tokens <= self.request.max_tokens
        assert not begun or finished.reply.token_ids[:num_begun] == begun.token_ids
        plan = finished.usage.plan
        assert plan.prompt_tokens == len(finished.prompt_ids)
        num_fed = plan.restored + plan.read + plan.replayed
        was_cut = finished.reason is FinishReason.CANCELLED and not num_tokens
        assert num_fed == plan.prompt_tokens or (was_cut and num_fed < plan.prompt_tokens)
        assert 0 <= plan.restored <= plan.matched <= plan.prompt_tokens
        assert min(plan.read, plan.replayed) >= 0


def _without_lines(thought: str) -> str:
    """Return a thought without its line breaks.

    The engine strips line breaks from the end of a thought. If a thought is stopped after a line
    break and then continued, its final text has this line break, but its streamed text lacks it.
    """
    return thought.replace("\n", "")
