"""The passes of a stored path once more, on empty caches: what they give is what is stored, bit for bit."""

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
    """Feed run's tokens (from token 0) as they were fed, one pass an iteration.

    Yields:
        The number of tokens that caches hold now, and the logits (V,) after the last of them; None
        where the pass once reached beyond.
    """
    for feed, kept_end in kept(run.feeds, 0, run.end):
        if feed.one_by_one:
            for position in range(feed.start, kept_end):
                yield position + 1, _feed(adapter, caches, run.token_ids[position : position + 1])
            continue
        # What the pass held beyond is gone. Its length matters to rounding, its tokens don't.
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
