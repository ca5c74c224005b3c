"""Sources of reply tokens: sampled from the logits, or given beforehand. Engine thread only.

A draw is a function of its arguments alone: of the logits, the token ids before the drawn one, and
its index in the reply, which gives the random key. So a token may be drawn again, or drawn at several
positions of one pass, and the reply is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import mlx.core as mx

from engine.chat.reply import ReplyStream
from engine.models.filters import LogitsFilter, make_filter
from engine.models.loader import LoadedModel
from engine.sampling.draw import draw
from engine.types import Request


class TokenSource(Protocol):
    """Draws the tokens of one reply."""

    def draw(self, logits: mx.array, recent: Callable[[], mx.array], *, index: int) -> mx.array:
        """Return a token id as a lazy scalar, which is computed after the logits are.

        Args:
            logits: (V,), of the position before the drawn token.
            recent: returns the last PENALTY_WINDOW token ids before it; called if they are needed.
            index: the position in the whole reply. A continued reply counts from its beginning.
        """
        ...


SourceFactory = Callable[[LoadedModel, Request, ReplyStream], TokenSource]


@dataclass(frozen=True, slots=True)
class SampledTokens:
    """Draws from filtered logits."""

    filter: LogitsFilter
    temperature: float
    seed: int

    def draw(self, logits: mx.array, recent: Callable[[], mx.array], *, index: int) -> mx.array:
        filtered = self.filter(recent, logits, index=index)
        return draw(filtered, temperature=self.temperature, seed=self.seed, index=index)


@dataclass(frozen=True, slots=True)
class ForcedTokens:
    """Gives the ids of a forced reply, then the token that ends a reply."""

    token_ids: Sequence[int]
    start: int  # index in the reply of the first of token_ids
    eos_id: int

    def draw(
        self,
        logits: mx.array,
        recent: Callable[[], mx.array],  # noqa: ARG002 — forced whatever came before
        *,
        index: int,
    ) -> mx.array:
        at = index - self.start
        token_id = self.token_ids[at] if at < len(self.token_ids) else self.eos_id
        # Without the dependency a reader would not wait for the pass, and steps would run ahead of the
        # device.
        return mx.depends(mx.array(token_id, mx.uint32), logits)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] — has no return type


def token_source(model: LoadedModel, request: Request, reply: ReplyStream) -> TokenSource:
    """Return the source of a request's tokens. They follow those that reply holds already."""
    sampling, tokenizer = request.sampling, model.prompts.tokenizer
    if request.forced is None:
        logits_filter = make_filter(sampling, model.vocab_size, model.spared_ids)
        return SampledTokens(logits_filter, sampling.temperature, sampling.seed)
    token_ids = model.prompts.forced_ids(
        request.forced.text, request.forced.reasoning, in_reasoning=reply.is_reasoning
    )
    return ForcedTokens(token_ids, len(reply.token_ids), min(tokenizer.markers.eos_ids))
