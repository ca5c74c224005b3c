"""A request on its way, and what must be true of it when it ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from app.conversation.actions import Turn
from engine.events import RequestFinished
from engine.types import (
    Channel,
    ConversationId,
    ForcedReply,
    Message,
    Request,
    RequestId,
    Role,
    SamplingParams,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class How:
    """How a reply is asked for."""

    sampling: SamplingParams = field(default_factory=SamplingParams)
    max_tokens: int = 4
    thinking: bool | None = None
    keep_thinking: bool = False
    forced: ForcedReply | None = None
    stop_after: int | None = None
    is_checked: bool = True  # held to the oracle

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
            record_logits=self.is_checked,
            side=side,
        )


@dataclass(slots=True, eq=False)
class Flight:
    """A request on its way."""

    request: Request
    visible: tuple[Message, ...]  # what a person sees above what is written
    turn: Turn | None  # None for a side request
    is_fresh: bool  # the newest message begins like no other
    is_started: bool = False
    prompt_ids: tuple[int, ...] = ()  # once it has started; empty while faults are planted
    fork: int = 0  # how much of the prompt was known, or found begun, when it started
    tail: int = 0  # where the prompt's generation tail begins
    has_lost: bool = False  # something was evicted meanwhile, perhaps of its own
    fed_before: Counter[int] = field(default_factory=Counter[int])  # by caches, when it started
    streamed: dict[Channel, str] = field(default_factory=lambda: dict.fromkeys(Channel, ""))

    def __post_init__(self) -> None:
        begun = self.begun
        if begun is not None:
            # Where it was stopped inside a character, that is still to come.
            self.streamed[Channel.ANSWER] = begun.content.rstrip("\N{REPLACEMENT CHARACTER}")
            self.streamed[Channel.REASONING] = begun.reasoning.rstrip("\N{REPLACEMENT CHARACTER}")

    @property
    def begun(self) -> Message | None:
        """The reply that goes on, as it was."""
        last = self.visible[-1]
        return last if last.role is Role.ASSISTANT else None

    @property
    def chat(self) -> str:
        return str(self.request.conversation_id)

    def check(self, finished: RequestFinished) -> None:
        """Assert that the end agrees with what was streamed, and the numbers with each other."""
        thought = self.streamed[Channel.REASONING]
        if self.begun is None:
            assert thought.rstrip("\n") == finished.reasoning
        else:
            assert _without_lines(thought) == _without_lines(finished.reasoning)
        # Blanks before a thought are shown before anyone knows that a thought follows.
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
        assert plan.restored + plan.read + plan.replayed == plan.prompt_tokens
        assert 0 <= plan.restored <= plan.matched <= plan.prompt_tokens
        assert min(plan.read, plan.replayed) >= 0


def _without_lines(thought: str) -> str:
    """A thought's own end has none; where one is stopped there and goes on, it is seen only at the end."""
    return thought.replace("\n", "")
