"""Token sources: objects that sample the tokens of a reply from logits, or return given tokens.

A draw depends on its arguments alone: the logits, the preceding token ids, and the index of the
token in the reply, which gives the random key. Therefore a token can be drawn a second time with
the same result. The tokens of several positions can also be drawn from one pass. Decoder calls
`draw` on the engine thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import mlx.core as mx

from engine.chat.reply import ReplyStream
from engine.chat.reply_ids import forced_ids
from engine.grammar.texts import CallSyntax, grammar_text
from engine.models.filters import LogitsFilter, make_filter
from engine.models.loader import LoadedModel
from engine.sampling.draw import draw
from engine.types import Request

if TYPE_CHECKING:
    from engine.grammar.matcher import Grammar


class TokensBefore(Protocol):
    """The tokens before a drawn token. They are collected only if a draw needs them."""

    def recent(self) -> mx.array:
        """Return the ids of the last PENALTY_WINDOW tokens of the prompt and the reply."""
        ...

    def answer_ids(self) -> list[int] | None:
        """Return the token ids of the answer. None within reasoning, or if one is not read yet."""
        ...


class TokenSource(Protocol):
    """The source of the tokens of one reply."""

    def draw(self, logits: mx.array, before: TokensBefore, *, index: int) -> mx.array:
        """Return the id of the next token as a lazy scalar that depends on the logits.

        Args:
            logits: logits at the position before the drawn token, shape (V,).
            before: the tokens before the drawn token.
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

    def draw(self, logits: mx.array, before: TokensBefore, *, index: int) -> mx.array:
        filtered = self.filter(before.recent, logits, index=index)
        return draw(filtered, temperature=self.temperature, seed=self.seed, index=index)


@dataclass(frozen=True, slots=True)
class FormattedTokens:
    """A token source that draws only tokens with which an answer keeps to a format.

    A multi-token prediction head guesses several tokens before one is read. Its guesses are not
    kept to the format, but a wrong guess is never confirmed.
    """

    source: SampledTokens
    grammar: Grammar
    # Ids of tokens. A marker of several tokens is left out: its first token may also begin
    # something else.
    opening_ids: Sequence[int]  # tokens that may precede the answer: they begin a reasoning
    closing_ids: Sequence[int]  # tokens that end a reasoning
    eos_ids: Sequence[int]

    def draw(self, logits: mx.array, before: TokensBefore, *, index: int) -> mx.array:
        answer_ids = before.answer_ids()
        if answer_ids is not None:
            allowed = _as_array(self.grammar.allowed_after(answer_ids)) > 0
            if not index and self.opening_ids:
                allowed[mx.array([*self.opening_ids])] = True
            logits = mx.where(allowed, logits, -mx.inf)
        elif self.closing_ids:
            logits = self._without_end(logits)
        return self.source.draw(logits, before, index=index)

    def _without_end(self, logits: mx.array) -> mx.array:
        """Let a reasoning that would end the reply end only itself, so that the answer follows."""
        closing, ends = mx.array([*self.closing_ids]), mx.array([*self.eos_ids])
        likeliest = mx.maximum(logits[closing], logits[ends].max())
        logits = mx.put_along_axis(logits, closing, likeliest, 0)
        return mx.put_along_axis(logits, ends, mx.array(-mx.inf, logits.dtype), 0)


@dataclass(frozen=True, slots=True)
class ForcedTokens:
    """A token source that returns the ids of a given reply, then an end-of-sequence token."""

    token_ids: Sequence[int]
    start: int  # index of token_ids[0] in the reply
    eos_id: int

    def draw(
        self,
        logits: mx.array,
        before: TokensBefore,  # noqa: ARG002 — forced tokens do not depend on it
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
        sampled = SampledTokens(logits_filter, sampling.temperature, sampling.seed)
        return sampled if request.answer_format is None else _formatted(model, request, sampled)
    token_ids = forced_ids(
        model.prompts.tokenizer,
        request.forced.text,
        request.forced.reasoning,
        in_reasoning=reply.is_reasoning,
    )
    return ForcedTokens(token_ids, len(reply.token_ids), min(tokenizer.markers.eos_ids))


def _formatted(model: LoadedModel, request: Request, source: SampledTokens) -> FormattedTokens:
    """Return a source that keeps the answer to the format of a request.

    Raises:
        AnswerFormatError: the format cannot be kept.
    """
    assert request.answer_format is not None
    tokenizer, calls = model.prompts.tokenizer, model.calls
    syntax = CallSyntax(
        calls.module, tokenizer.grammar_marker(calls.start), tokenizer.grammar_marker(calls.end)
    )
    grammar = tokenizer.grammar(grammar_text(request.answer_format, request.tools, syntax))
    markers = tokenizer.markers
    opens = len(markers.think_start) == 1 and request.thinking is not False
    closes = len(markers.think_end) == 1
    return FormattedTokens(
        source,
        grammar,
        opening_ids=markers.think_start if opens else (),
        closing_ids=markers.think_end if closes else (),
        eos_ids=tuple(markers.eos_ids),
    )


def _as_array(values: memoryview) -> mx.array:
    return mx.array(values)  # pyright: ignore[reportArgumentType] — a buffer of bytes is accepted
