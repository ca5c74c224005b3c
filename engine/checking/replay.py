"""Replay: repeat the forward passes that fed a sequence of tokens, on empty caches.

The way in which tokens are divided into passes affects rounding. A replay uses the same passes as
the original run. On a CPU its K/V, states and logits therefore equal the original bit for bit.
"""

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
    """Feed all tokens again. Each iteration repeats one of the original passes.

    An original pass may have been cut: its last tokens were removed from the caches later. The
    replay repeats such a pass at its full length, then cuts it again.

    Args:
        adapter: the model.
        caches: empty caches of the model.
        run: the tokens and their passes.

    Yields:
        The number of tokens in the caches after a pass, and the logits (V,) of the last token. The
        logits are None if the pass was cut, because the last token of the full pass is unknown.
    """
    for feed, kept_end in kept(run.feeds, 0, run.end):
        if feed.one_by_one:
            for position in range(feed.start, kept_end):
                yield position + 1, _feed(adapter, caches, run.token_ids[position : position + 1])
            continue
        # The removed tokens are unknown. Repeat the last kept token in their place. The results of
        # the kept tokens stay the same: rounding depends on the length of the pass, but not on the
        # tokens that follow.
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
