"""One request while it is being answered: its tokens, its caches, its clock."""

from __future__ import annotations

from dataclasses import dataclass, field

import mlx.core as mx

from engine.cache.held import Lease
from engine.chat.prompt import Prompt
from engine.chat.reply import ReplyStream
from engine.events import ReadAhead
from engine.models.filters import LogitsFilter
from engine.runner.prefill import Prefill
from engine.types import FinishReason, Message, PromptPlan, Request, Role

# Room made for a reply before it starts; for a longer one buffers grow by an eighth at a time.
_REPLY_ROOM = 512


def room_for(prompt_len: int, request: Request) -> int:
    """Tokens to make room for before an answer: the prompt's and a usual reply's."""
    return prompt_len + min(request.max_tokens, _REPLY_ROOM)


@dataclass(slots=True, kw_only=True)
class Clock:
    """Moments of a request, in seconds of time.perf_counter()."""

    submitted: float
    started: float
    rendered: float = 0.0
    restored: float = 0.0
    first_token: float = 0.0
    last_token: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """A drawn token that nobody has read yet, lazy; and the logits (V,), if somebody wants them."""

    token_id: mx.array
    logits: mx.array | None


@dataclass(slots=True, kw_only=True, eq=False)
class Sequence:
    """A request inside the engine.

    The lease's caches hold prompt[:fed] and then all but the newest of its output: the newest is
    fed together with what follows it. While it decodes they may be ahead of that. Of a reply that
    goes on, what was there before is the end of the prompt.
    """

    request: Request
    prompt: Prompt
    plan: PromptPlan
    prefill: Prefill
    reply: ReplyStream
    filter: LogitsFilter
    forced_ids: tuple[int, ...] | None
    clock: Clock
    logits: mx.array | None = None  # (V,) after the prompt, None while it is being fed
    drawn: Drawn | None = None
    recorded: list[mx.array] = field(default_factory=list[mx.array])
    ended: FinishReason | None = None

    @property
    def lease(self) -> Lease:
        return self.prefill.lease

    @property
    def fed(self) -> int:
        """Tokens in the caches."""
        return self.prefill.fed

    @property
    def room(self) -> int:
        """Tokens to make room for now: as for a usual reply, or one more of a longer one."""
        prompt_len = len(self.prompt.token_ids)
        return max(room_for(prompt_len, self.request), prompt_len + self.num_output + 1)

    @property
    def num_output(self) -> int:
        """Tokens of the reply that this request wrote."""
        return len(self.reply.token_ids) - len(self.prompt.begun)

    @property
    def output_ids(self) -> list[int]:
        return self.reply.token_ids[len(self.prompt.begun) :]

    @property
    def message(self) -> Message:
        """The reply so far, as later requests will bring it."""
        return Message(
            role=Role.ASSISTANT,
            content=self.reply.content,
            reasoning=self.reply.reasoning,
            reply=self.reply.tokens(),
        )

    @property
    def _asked(self) -> tuple[Message, ...]:
        """The messages above the reply."""
        messages = self.request.messages
        return messages[:-1] if messages[-1].role is Role.ASSISTANT else messages

    @property
    def upcoming(self) -> ReadAhead:
        """What can be read ahead after this reply."""
        request = self.request
        return ReadAhead(
            conversation_id=request.conversation_id,
            messages=(*self._asked, self.message),
            thinking=request.thinking,
            keep_thinking=request.keep_thinking,
        )
