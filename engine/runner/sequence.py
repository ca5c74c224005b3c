"""A request while it is answered: its prompt, its live caches, its reply so far, its timing."""

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

# Tokens reserved for a reply before it starts. For a longer reply the buffers grow by an eighth at
# a time.
_REPLY_ROOM = 512


def room_for(prompt_len: int, request: Request) -> int:
    """Return the number of tokens to reserve K/V for: the prompt's and those of a usual reply."""
    return prompt_len + min(request.max_tokens, _REPLY_ROOM)


@dataclass(slots=True, kw_only=True)
class Clock:
    """Times of a request in seconds of time.perf_counter(), each 0.0 until it is reached."""

    submitted: float  # the app sent the request
    started: float  # the engine took it from the queue
    rendered: float = 0.0  # the prompt was tokenised
    restored: float = 0.0  # the cached part of the prompt was restored
    first_token: float = 0.0  # the first token was read
    last_token: float = 0.0  # the newest token was read


@dataclass(slots=True, kw_only=True, eq=False)
class Sequence:
    """A request that is being answered.

    Its caches hold the prompt as far as it is fed, then all output tokens but the newest, which
    is fed in the pass that gives the next token. With look-ahead, the caches can hold one token
    more while the sequence is decoded. The earlier part of a continued reply belongs to the prompt.
    """

    request: Request
    prompt: Prompt
    plan: PromptPlan
    prefill: Prefill
    reply: ReplyStream  # the reply so far, with the part that a continued reply began with
    source: TokenSource
    clock: Clock
    logits: mx.array | None = None  # (V,) after the prompt, None while the prompt is being fed
    drawn: mx.array | None = None  # id of the next token, lazy, until it is read
    ended: FinishReason | None = None  # None while the reply is written

    @property
    def lease(self) -> Lease:
        return self.prefill.lease

    @property
    def fed(self) -> int:
        """Number of tokens in the caches."""
        return self.prefill.fed

    @property
    def room(self) -> int:
        """Number of tokens to reserve K/V for: the prompt, a usual reply, and the next token."""
        prompt_len = len(self.prompt.token_ids)
        return max(room_for(prompt_len, self.request), prompt_len + self.num_output + 1)

    @property
    def num_output(self) -> int:
        """Number of reply tokens that this request drew, without the part that it continues."""
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
        """The messages before the reply."""
        messages = self.request.messages
        return messages[:-1] if messages[-1].role is Role.ASSISTANT else messages

    @property
    def upcoming(self) -> ReadAhead:
        """The conversation's next prompt, as far as it is known after this reply."""
        request = self.request
        return ReadAhead(
            conversation_id=request.conversation_id,
            messages=(*self._asked, self.message),
            thinking=request.thinking,
            keep_thinking=request.keep_thinking,
        )
