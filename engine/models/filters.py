"""mlx-lm's logit filters and penalties behind one callable. Drawing is engine.sampling's."""

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

# How many tokens back a penalty looks.
PENALTY_WINDOW = 64

_Penalty = Callable[[mx.array, mx.array], mx.array]
_Cut = Callable[[mx.array, int], mx.array]  # log-probabilities (1, V), index of the output token


@dataclass(frozen=True, slots=True)
class LogitsFilter:
    """Raw logits to filtered ones.

    Order as in mlx-lm: penalties on logits, then top-p, min-p, XTC and top-k on log-probabilities.
    """

    penalties: Sequence[_Penalty]
    cuts: Sequence[_Cut]

    def __call__(self, recent: Callable[[], mx.array], logits: mx.array, *, index: int) -> mx.array:
        """Lazy.

        Args:
            recent: gives the last PENALTY_WINDOW token ids, if they are wanted.
            logits: (V,)
            index: which token of the reply is drawn.

        Returns:
            Logits (V,): log-probabilities where something is cut off.
        """
        if not (self.penalties or self.cuts):
            return logits
        row = logits[None]  # (1, V)
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
    """The filter for a request's sampling parameters; XTC never leaves out spared_ids."""
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
        # The largest is never cut off.
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
    """XTC ("exclude top choices", p-e-w 2024), by chance of our own: mlx-lm's knows no seed."""
    if chance(params.seed, index) >= params.xtc_probability:
        return row
    return apply_xtc(row, 1.0, params.xtc_threshold, spared_ids)
