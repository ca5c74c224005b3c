"""Combine the logit filters and penalties of mlx-lm into one function per request.

engine/sampling draws the next token from the filtered logits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import mlx.core as mx
from mlx_lm.sample_utils import (
    apply_min_p,
    apply_top_k,
    apply_top_p,
    apply_xtc,
    make_logits_processors,
)

from engine.sampling.draw import chance
from engine.types import SamplingParams

# Number of recent tokens that the penalties take into account.
PENALTY_WINDOW = 64

_Penalty = Callable[[mx.array, mx.array], mx.array]
# A function that excludes tokens from the next draw. First argument: log-probabilities of shape
# (1, V). Second argument: the index of the drawn token in the reply.
_Cut = Callable[[mx.array, int], mx.array]


@dataclass(frozen=True, slots=True)
class LogitsFilter:
    """The filters and penalties of one request, applied to the raw logits before a token is drawn.

    The order is the same as in mlx-lm: first the penalties on logits, then top-p, min-p, XTC and
    top-k on log-probabilities.
    """

    penalties: Sequence[_Penalty]
    # Functions that exclude tokens, by setting their log-probabilities to minus infinity.
    cuts: Sequence[_Cut]

    def __call__(self, recent: Callable[[], mx.array], logits: mx.array, *, index: int) -> mx.array:
        """Return the filtered logits, as a lazy array of shape (V,).

        If there are cuts, the result contains log-probabilities instead of logits.

        Args:
            recent: returns the last PENALTY_WINDOW token ids. Called only if there are penalties.
            logits: raw logits, of shape (V,).
            index: index of the drawn token in the reply.
        """
        if not (self.penalties or self.cuts):
            return logits
        row = logits[None]  # shape (1, V)
        if self.penalties:
            token_ids = recent()
            for penalty in self.penalties:
                row = penalty(token_ids, row)
        if self.cuts:
            row = row - mx.logsumexp(row, axis=-1, keepdims=True)
        for cut in self.cuts:
            row = cut(row, index)
        return row[0]


def make_filter(
    params: SamplingParams, vocab_size: int, spared_ids: Sequence[int] = ()
) -> LogitsFilter:
    """Return the filter for a request's sampling parameters.

    Args:
        params: the sampling parameters.
        vocab_size: number of tokens in the vocabulary. A top-k of this size or more has no effect.
        spared_ids: token ids that XTC must not exclude.
    """
    is_off = params.repetition_penalty == 1.0 or params.repetition_penalty <= 0.0
    penalties = make_logits_processors(
        repetition_penalty=None if is_off else params.repetition_penalty,
        repetition_context_size=PENALTY_WINDOW,
        presence_penalty=params.presence_penalty or None,
        presence_context_size=PENALTY_WINDOW,
        frequency_penalty=params.frequency_penalty or None,
        frequency_context_size=PENALTY_WINDOW,
    )
    cuts: list[_Cut] = []
    if params.temperature <= 0.0:
        # At temperature 0 the most likely token is drawn. No filter excludes this token, so no
        # filter is needed.
        return LogitsFilter(penalties, cuts)
    if 0.0 < params.top_p < 1.0:
        cuts.append(_always(partial(apply_top_p, top_p=params.top_p)))
    if params.min_p > 0.0:
        keeps = params.min_kept
        cuts.append(_always(partial(apply_min_p, min_p=params.min_p, min_tokens_to_keep=keeps)))
    if params.xtc_probability > 0.0:
        cuts.append(partial(_leave_out_top, params, list(spared_ids)))
    if 0 < params.top_k < vocab_size:
        cuts.append(_always(partial(apply_top_k, top_k=params.top_k)))

    return LogitsFilter(penalties, cuts)


def _always(cut: Callable[[mx.array], mx.array]) -> _Cut:
    return lambda row, _index: cut(row)


def _leave_out_top(
    params: SamplingParams, spared_ids: list[int], row: mx.array, index: int
) -> mx.array:
    """Apply XTC ("exclude top choices", p-e-w 2024) to log-probabilities of shape (1, V).

    XTC is applied to only a random share of a reply's tokens. mlx-lm's own random numbers cannot be
    seeded per request. So the random number is computed here, from the request's seed and the
    token's index in the reply.
    """
    if chance(params.seed, index) >= params.xtc_probability:
        return row
    return apply_xtc(row, 1.0, params.xtc_threshold, spared_ids)
