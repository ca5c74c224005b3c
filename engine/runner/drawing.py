"""Token sources: objects that sample the tokens of a reply from logits, or return given tokens.

A draw depends on its arguments alone: the logits, the preceding token ids, and the index of the
token in the reply, which gives the random key. Therefore a token can be drawn a second time with
the same result. The tokens of several positions can also be drawn from one pass. Decoder calls
`draw` on the engine thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import mlx.core as mx

from engine.chat.reply import ReplyStream
from engine.chat.reply_ids import forced_ids
from engine.models.filters import LogitsFilter, make_filter
from engine.models.loader import LoadedModel
from engine.sampling.draw import draw
from engine.types import Request


class TokenSource(Protocol):
    """The source of the tokens of one reply."""

    def draw(self, logits: mx.array, recent: Callable[[], mx.array], *, index: int) -> mx.array:
        """Return the id of the next token as a lazy scalar that depends on the logits.

        Args:
            logits: logits at the position before the drawn token, shape (V,).
            recent: function that returns the last PENALTY_WINDOW token ids before the drawn token.
                It is called only if these ids are needed.
            index: position of the token in the whole reply. In a continued reply, positions count
                from the beginning of the earlier part.
        """
        ...


# Function that makes the token source of a request. The default is token_source;
# engine/checking/records.py has a variant that keeps the logits.
SourceFactory = Callable[[LoadedModel, Request, ReplyStream], TokenSource]


@dataclass(frozen=True, slots=True)
class SampledTokens:
    """A token source that draws from filtered logits."""

    filter: LogitsFilter
    temperature: float
    seed: int

    def draw(self, logits: mx.array, recent: Callable[[], mx.array], *, index: int) -> mx.array:
        filtered = self.filter(recent, logits, index=index)
        return draw(filtered, temperature=self.temperature, seed=self.seed, index=index)


@dataclass(frozen=True, slots=True)
class ForcedTokens:
    """A token source that returns the ids of a given reply, then an end-of-sequence token."""

    token_ids: Sequence[int]
    start: int  # index of token_ids[0] in the reply
    eos_id: int

    def draw(
        self,
        logits: mx.array,
        recent: Callable[[], mx.array],  # noqa: ARG002 — forced tokens do not depend on it
        *,
        index: int,
    ) -> mx.array:
        at = index - self.start
        token_id = self.token_ids[at] if at < len(self.token_ids) else self.eos_id
        # Make the token depend on the logits. Otherwise reading the token would not wait for the
        # pass, and the decode steps would run ahead of the device.
        return mx.depends(mx.array(token_id, mx.uint32), logits)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] — has no return type


def token_source(model: LoadedModel, request: Request, reply: ReplyStream) -> TokenSource:
    """Return the source of the tokens that a request adds to a reply.

    reply: the reply so far. It is empty unless the request continues a reply.
    """
    sampling, tokenizer = request.sampling, model.prompts.tokenizer
    if request.forced is None:
        logits_filter = make_filter(sampling, model.vocab_size, model.spared_ids)
        return SampledTokens(logits_filter, sampling.temperature, sampling.seed)
    token_ids = forced_ids(
        model.prompts.tokenizer,
        request.forced.text,
        request.forced.reasoning,
        in_reasoning=reply.is_reasoning,
    )
    return ForcedTokens(token_ids, len(reply.token_ids), min(tokenizer.markers.eos_ids))
