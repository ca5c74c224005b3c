"""A request while it is answered: its tokens, its caches, its clock."""

from __future__ import annotations

from dataclasses import dataclass

import mlx.core as mx

from engine.cache.holdings import Lease
from engine.chat.prompt import Prompt
from engine.chat.reply import ReplyStream
from engine.events import ReadAhead
from engine.runner.drawing import TokenSource
from engine.runner.prefill import Prefill
from engine.types import FinishReason, Message, PromptPlan, Request, Role

# Room made for a reply before it starts; for a longer one buffers grow by an eighth at a time.
_REPLY_ROOM = 512


def room_for(prompt_len: int, request: Request) -> int:
    """Return the number of tokens to make room for: the prompt's and a usual reply's."""
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


@dataclass(slots=True, kw_only=True, eq=False)
class Sequence:
    """A request inside the engine.

    The lease's caches hold prompt[:fed], then all output tokens but the newest, which is fed in the
    pass that gives the next. While the sequence decodes they may be one token ahead of that. The
    earlier part of a continued reply is the end of the prompt.
    """

    request: Request
    prompt: Prompt
    plan: PromptPlan
    prefill: Prefill
    reply: ReplyStream
    source: TokenSource
    clock: Clock
    logits: mx.array | None = None  # (V,) after the prompt, None while it is being fed
    drawn: mx.array | None = None  # the next token's id, lazy, until it is read
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
        """Number of tokens to make room for now: a usual reply's, or one more than a longer one has."""
        prompt_len = len(self.prompt.token_ids)
        return max(room_for(prompt_len, self.request), prompt_len + self.num_output + 1)

    @property
    def num_output(self) -> int:
        """Number of reply tokens that this request drew."""
        return len(self.reply.token_ids) - len(self.prompt.begun)

    @property
    def output_ids(self) -> list[int]:
        return self.reply.token_ids[len(self.prompt.begun) :]

    @property
    def message(self) -> Message:
        """The reply so far, as later requests will contain it."""
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
        """The next prompt of the conversation, as far as it is known after this reply."""
        request = self.request
        return ReadAhead(
            conversation_id=request.conversation_id,
            messages=(*self._asked, self.message),
            thinking=request.thinking,
            keep_thinking=request.keep_thinking,
        )
