"""A request while it is answered: its prompt, its live caches, its reply so far, its timing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import mlx.core as mx

from engine.cache.holdings import Lease
from engine.chat.prompt import Prompt
from engine.chat.reply import ReplyStream
from engine.events import ReadAhead
from engine.runner.drawing import TokenSource
from engine.runner.prefill import Prefill
from engine.runner.scores import ScoredTokens
from engine.speculation.pace import MAX_PASS_LEN
from engine.types import FinishReason, Message, Request, Role
from engine.usage import PromptPlan

# Number of reply tokens to reserve K/V for before the reply starts. For a longer reply, the buffers
# grow by an eighth at a time.
_REPLY_ROOM = 512


def room_for(prompt_len: int, request: Request) -> int:
    """Return the number of tokens to reserve K/V for: the prompt and a reply of usual length."""
    return prompt_len + min(request.max_tokens, _REPLY_ROOM)


@dataclass(slots=True, kw_only=True)
class Clock:
    """Times of the steps of a request, in seconds of time.perf_counter().

    A time is 0.0 until its step is reached.
    """

    submitted: float  # when the app sent the request
    started: float  # when the engine took the request from the queue
    rendered: float = 0.0  # when the prompt was tokenised
    restored: float = 0.0  # when the cached part of the prompt was restored
    first_token: float = 0.0  # when the first reply token was read
    last_token: float = 0.0  # when the newest reply token was read


@dataclass(slots=True, kw_only=True, eq=False)
class Sequence:
    """A request that is being answered.

    During prefill, the caches hold the part of the prompt that is already fed. During decoding,
    they hold the prompt and all output tokens except the newest. The newest token is fed by the
    pass that computes the next token. With look-ahead, the caches can hold one token more. If the
    request continues a reply, the earlier part of the reply belongs to the prompt.
    """

    request: Request
    prompt: Prompt
    plan: PromptPlan
    # Returns the part of the plan that was carried out, by the number of tokens in the caches.
    plan_until: Callable[[int | None], PromptPlan]
    prefill: Prefill
    reply: ReplyStream  # the reply so far, including the earlier part of a continued reply
    source: TokenSource
    scored: ScoredTokens | None = None  # `source`, if it computes log-probabilities
    clock: Clock
    max_output: int  # highest number of tokens that this request may add to the reply
    logits: mx.array | None = None  # logits (V,) after the prompt; None during prefill
    # Id of the newest drawn token, as a lazy scalar; None once the id is read. Set by Decoder.
    drawn: mx.array | None = None
    # Logits (V,) of the two newest draws, the newest last. Once the sequence is detached, the
    # newest draw is that of the newest token. Kept only for a preview. Set by Decoder.
    rows: tuple[mx.array, ...] = ()
    # True while the caches hold one token more than their record, because the newest pass looked
    # ahead. Set by Decoder.
    is_ahead: bool = False
    disk_s: float = 0.0  # seconds for reading cached state from disk
    # Number of tokens in the caches at the newest progress event, and its time.perf_counter().
    num_reported: int = 0
    reported: float = 0.0
    num_passes: int = 0  # number of passes of decode steps
    num_drafted: int = 0  # number of drafts that these passes verified
    num_accepted: int = 0  # number of drafts that the model confirmed
    ended: FinishReason | None = None  # reason why the reply ended; None while it is being written

    @property
    def lease(self) -> Lease:
        return self.prefill.lease

    @property
    def fed(self) -> int:
        """Number of tokens in the caches."""
        return self.prefill.fed

    @property
    def is_in_prefill(self) -> bool:
        """True until the prompt is fed completely."""
        return self.logits is None

    @property
    def num_unread(self) -> int:
        """Number of prompt tokens that are still to be fed."""
        return len(self.prompt.token_ids) - self.fed

    @property
    def keeps_rows(self) -> bool:
        """True if the logits of the newest draws are kept."""
        return self.lease.side and self.lease.has_points and not self.draws_late

    @property
    def room(self) -> int:
        """Number of tokens to reserve K/V for: the prompt, a usual reply, and the next pass."""
        prompt_len = len(self.prompt.token_ids)
        num_tokens = prompt_len + self.num_output + MAX_PASS_LEN
        return max(room_for(prompt_len, self.request), num_tokens)

    @property
    def num_output(self) -> int:
        """Number of reply tokens that this request drew.

        The earlier part of a continued reply does not count.
        """
        return len(self.reply.token_ids) - len(self.prompt.begun)

    @property
    def num_left(self) -> int:
        """Highest number of tokens that this request may still add to the reply."""
        return self.max_output - self.num_output

    @property
    def draws_late(self) -> bool:
        """True if each token must be read before the next one can be drawn, for the format."""
        return self.request.answer_format is not None

    @property
    def takes_drafts(self) -> bool:
        """False if drafts could end the reasoning before an answer in a format.

        The format begins with the first token of the answer, which is known once it is read.
        """
        return self.request.answer_format is None or not self.reply.is_reasoning

    @property
    def output_ids(self) -> list[int]:
        return self.reply.token_ids[len(self.prompt.begun) :]

    @property
    def message(self) -> Message:
        """The reply so far, as the message that later requests will contain."""
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
    def has_reply(self) -> bool:
        """False if the request was stopped before the first token, or has no token yet."""
        return bool(self.reply.token_ids) or self.ended is FinishReason.STOP

    @property
    def upcoming(self) -> ReadAhead:
        """The conversation's next prompt, as far as it is known after this reply."""
        request = self.request
        return ReadAhead(
            conversation_id=request.conversation_id,
            messages=(*self._asked, self.message),
            thinking=request.thinking,
            keep_thinking=request.keep_thinking,
            tools=request.tools,
        )
