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
from engine.models.rewinding import Rewinding
from engine.models.rows import RowByRow


def replay(
    adapter: ModelAdapter, rewinding: Rewinding | None, caches: list[object], run: TokenRun
) -> Iterator[tuple[int, mx.array]]:
    """Feed all tokens again. Each iteration repeats one of the original passes.

    An original pass may have been cut: its last tokens were removed from the caches later, because
    they were drafts that the model did not confirm, or because another branch begins there. The
    replay repeats such a pass at its full length, then cuts it again.

    Args:
        adapter: the model.
        rewinding: rewinds the recurrent states after a cut pass. None: only K/V are cut.
        caches: empty caches of the model.
        run: the tokens and their passes.

    Yields:
        The number of tokens in the caches after a pass, and the logits of the tokens of this pass
        that are kept, of shape (L, V).
    """
    for feed, kept_end in kept(run.feeds, 0, run.end):
        if feed.one_by_one:
            for position in range(feed.start, kept_end):
                token_ids = run.token_ids[position : position + 1]
                yield position + 1, _feed(adapter, caches, token_ids)
            continue
        if kept_end == feed.end:
            yield kept_end, _feed(adapter, caches, run.token_ids[feed.start : kept_end])
            continue
        # The removed tokens are unknown. Repeat the last kept token in their place. The results of
        # the kept tokens stay the same: rounding depends on the length of the pass, but not on the
        # tokens that follow.
        num_kept = kept_end - feed.start
        rest = run.token_ids[kept_end - 1 : kept_end] * (feed.end - kept_end)
        token_ids = (*run.token_ids[feed.start : kept_end], *rest)
        if rewinding is None:
            logits = _feed(adapter, caches, token_ids)
            kv.cut(Leaves.of(caches), kept_end)
        else:
            group = RowByRow([caches])
            logits = group.forward(adapter, [mx.array(token_ids)])[0]
            group.keep(rewinding, {0: num_kept})
            _evaluate(logits, caches)
        yield kept_end, logits[:num_kept]


def _feed(adapter: ModelAdapter, caches: list[object], token_ids: Sequence[int]) -> mx.array:
    logits = adapter.feed(token_ids, caches)
    _evaluate(logits, caches)
    return logits


def _evaluate(logits: mx.array, caches: Sequence[object]) -> None:
    leaves = Leaves.of(caches)
    evaluate(logits, leaves.buffers, leaves.states)
