"""Repeats the passes of a stored path on empty caches: the results equal the stored ones bit for bit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import mlx.core as mx

from engine.cache import kv
from engine.cache.feeding import kept
from engine.cache.layout import Leaves
from engine.cache.radix import TokenRun
from engine.cache.trees import evaluate
from engine.models.adapter import ModelAdapter


def replay(
    adapter: ModelAdapter, caches: list[object], run: TokenRun
) -> Iterator[tuple[int, mx.array | None]]:
    """Feed the tokens of run, from token 0 on, in the passes that first fed them: one an iteration.

    Yields:
        The number of tokens in the caches after the pass, and the logits (V,) of the last of them.
        The logits are None if the pass was cut: they were those of a later token.
    """
    for feed, kept_end in kept(run.feeds, 0, run.end):
        if feed.one_by_one:
            for position in range(feed.start, kept_end):
                yield position + 1, _feed(adapter, caches, run.token_ids[position : position + 1])
            continue
        # The cut tokens are not known any more. Rounding depends on the pass's length, not on them.
        rest = run.token_ids[kept_end - 1 : kept_end] * (feed.end - kept_end)
        logits = _feed(adapter, caches, (*run.token_ids[feed.start : kept_end], *rest))
        if rest:
            kv.cut(Leaves.of(caches).kv, kept_end)
        yield kept_end, None if rest else logits


def _feed(adapter: ModelAdapter, caches: list[object], token_ids: Sequence[int]) -> mx.array:
    logits = adapter.forward(token_ids, caches)
    leaves = Leaves.of(caches)
    evaluate(logits, leaves.buffers, leaves.states)
    return logits
