"""Compares the decode speed of two kinds of batches.

In the engine's batch each row keeps its own K/V. mlx-lm merges and pads the K/V of all rows.

    python -m tests.benchmarks.attending [--model DIR] [--lens 100 200 400 800] [--reps 10]

Both batches decode the same conversations on the same model, in turn. A pass is one token in each
row. Prints one JSON line of medians:

rows_to_padded  passes per second of the engine's batch, divided by those of the padded batch
join_rows_ms    time to make the engine's batch of restored caches (copies no K/V)
join_padded_ms  time to make the padded batch of restored caches (copies all K/V)

For a real model on Linux set LD_PRELOAD=libopenblas.so.0.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import harmonic_mean, median
from typing import Any

import mlx.core as mx

from engine.cache.layout import leaves_of
from engine.cache.trees import arrays_in, evaluate, evaluate_soon
from engine.models.adapter import ModelAdapter
from engine.models.loader import load_model
from engine.models.rows import MergedRows
from tests.fakes.tiny_model import Template, build_tiny

NUM_TOKENS = 64
WARM_UPS = 2
Forward = Callable[[ModelAdapter, Sequence[mx.array]], list[mx.array]]


class PaddedRows:
    """A batch as mlx-lm's BatchGenerator keeps it: one merged, padded cache per layer."""

    def __init__(self, rows: Sequence[Sequence[Any]]) -> None:
        self.caches = [layer[0].merge(layer) for layer in zip(*rows, strict=True)]

    def forward(self, adapter: ModelAdapter, token_ids: Sequence[mx.array]) -> list[mx.array]:
        logits = adapter.run(mx.stack(list(token_ids)), self.caches)
        return [logits[row] for row in range(len(token_ids))]


def read(adapter: ModelAdapter, num_tokens: int) -> list[object]:
    """Return caches that hold a conversation of `num_tokens` tokens."""
    caches = adapter.new_caches()
    for start in range(0, num_tokens, 512):
        token_ids = [token_id % 97 for token_id in range(start, min(start + 512, num_tokens))]
        adapter.forward(token_ids, caches)
        evaluate(held(caches))
    return caches


def held(caches: Sequence[object]) -> list[mx.array]:
    return [array for leaf in leaves_of(caches) for array in arrays_in(vars(leaf))]


def passes_a_second(adapter: ModelAdapter, forward: Forward, num_rows: int) -> float:
    """Return the decode passes per second. Start each pass before the previous pass has ended."""
    token_ids = [mx.array([row]) for row in range(num_rows)]
    start = 0.0
    for step in range(NUM_TOKENS + WARM_UPS):
        following = [mx.argmax(logits) for logits in forward(adapter, token_ids)]
        evaluate_soon(following)
        evaluate(token_ids)
        token_ids = following
        if step == WARM_UPS:
            start = time.perf_counter()
    evaluate(token_ids)
    return NUM_TOKENS / (time.perf_counter() - start)


def measure(adapter: ModelAdapter, lens: Sequence[int], reps: int) -> dict[str, object]:
    to_padded: list[float] = []
    joins: list[tuple[float, float]] = []
    for _ in range(reps):
        rows = [read(adapter, num_tokens) for num_tokens in lens]
        start = time.perf_counter()
        merged = MergedRows(rows)
        evaluate([states.merged.cache for states in vars(merged)["_states"]])
        middle = time.perf_counter()
        padded = PaddedRows(rows)
        evaluate(held(padded.caches))
        joins.append((middle - start, time.perf_counter() - middle))

        before = passes_a_second(adapter, merged.forward, len(lens))
        theirs = passes_a_second(adapter, padded.forward, len(lens))
        after = passes_a_second(adapter, merged.forward, len(lens))
        to_padded.append(harmonic_mean((before, after)) / theirs)
    return {
        "lens": list(lens),
        "rows_to_padded": round(median(to_padded), 3),
        "join_rows_ms": round(median(ours for ours, _ in joins) * 1e3, 1),
        "join_padded_ms": round(median(theirs for _, theirs in joins) * 1e3, 1),
    }


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", type=Path)
    parser.add_argument("--lens", type=int, nargs="+", default=[100, 200, 400, 800])
    parser.add_argument("--reps", type=int, default=10)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.model or build_tiny("qwen3_5", Path(temporary) / "m", Template.KEEPING)
        adapter = load_model(folder, lambda _done, _total: None).adapter
        print(json.dumps(measure(adapter, args.lens, args.reps)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
