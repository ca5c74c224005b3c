"""Cost of recording a verify pass and of rewinding it, as shares of passes of the same run.

    python -m tests.benchmarks.rewinding [--model DIR] [--pass-len 5] [--pairs 200] [--context 256]
        [--accepted 0.7]

Prints, with medians over pairs of passes that alternate:

recording   time that a pass takes longer because its recurrent functions are noted, as a share of
            the pass
rewinding   time that the removal of tokens takes, as a share of a step of one token: for each
            number of kept tokens, and for numbers that are drawn as in a reply where --accepted is
            the share of the drafts that the model confirms. The rewound states are computed at
            once; in a reply, the next pass computes them

Without --model the model is a random Qwen3.5 of 12 layers and 400 MB, in float32 on a CPU. For a
fast CPU on Linux set LD_PRELOAD=libopenblas.so.0.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import mlx.core as mx

from engine.cache.layout import Leaves
from engine.cache.trees import evaluate
from engine.models.loader import LoadedModel, load_model
from engine.models.rows import RowByRow
from tests.fakes.tiny_model import CONFIGS, Template, build_tiny
from tests.fakes.ways import ways_of

# Qwen3.5 with the widths of a model of 0.8 billion parameters, and half of its layers.
QWEN = {
    **CONFIGS["qwen3_5"]["text_config"],
    "hidden_size": 1024,
    "num_hidden_layers": 12,
    "intermediate_size": 3584,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 256,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 16,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
}


class Passes:
    """Passes over one conversation, each of which is undone after it is timed."""

    def __init__(self, model: LoadedModel, context: int, pass_len: int) -> None:
        rewinding = ways_of(model).rewinding
        assert rewinding is not None, "this model cannot be rewound"
        self._adapter, self._rewinding = model.adapter, rewinding
        self._caches = model.adapter.new_caches()
        self._ids = mx.array([(7 * i) % 200 for i in range(pass_len)])
        evaluate(self._adapter.forward([(3 * i) % 200 for i in range(context)], self._caches))

    def one(self) -> None:
        evaluate(self._adapter.run(self._ids[None, :1], self._caches), self._states())

    def plain(self) -> None:
        evaluate(self._adapter.run(self._ids[None], self._caches), self._states())

    def recorded(self) -> None:
        group = RowByRow([self._caches])
        evaluate(group.forward(self._adapter, [self._ids]), self._states())

    def rewound(self, kept: int) -> None:
        group = RowByRow([self._caches])
        evaluate(group.forward(self._adapter, [self._ids]), self._states())
        group.keep(self._rewinding, {0: kept})
        evaluate(self._states())

    def seconds(self, work: Callable[[], None]) -> float:
        """Return the duration of a pass. The caches are as before afterwards."""
        before = RowByRow([self._caches])
        start = time.perf_counter()
        work()
        taken = time.perf_counter() - start
        before.hand_back(0, undoing=True)
        return taken

    def _states(self) -> object:
        leaves = Leaves.of(self._caches)
        return leaves.buffers, leaves.states


def paired(passes: Passes, works: list[Callable[[], None]], pairs: int) -> list[list[float]]:
    """Return the durations of all works. They alternate, in both orders."""
    found: list[list[float]] = [[] for _ in works]
    for number in range(pairs + 2):
        order = range(len(works)) if number % 2 else reversed(range(len(works)))
        for index in order:
            seconds = passes.seconds(works[index])
            if number > 1:  # the first passes compile kernels
                found[index].append(seconds)
    return found


def drawn_kept(rng: random.Random, pass_len: int, accepted: float) -> int:
    """Return the number of kept tokens of a pass in which at least one draft is wrong."""
    shares = [accepted**num_right for num_right in range(pass_len - 1)]
    return rng.choices(range(1, pass_len), shares)[0]


def more(longer: list[float], shorter: list[float]) -> float:
    return median(a - b for a, b in zip(longer, shorter, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", type=Path)
    parser.add_argument("--pass-len", type=int, default=5)
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--context", type=int, default=256)
    parser.add_argument("--accepted", type=float, default=0.7)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as parent:
        folder = args.model
        if folder is None:
            config = {**CONFIGS["qwen3_5"], "text_config": QWEN}
            folder = build_tiny("qwen", Path(parent) / "qwen", Template.KEEPING, {"qwen": config})
        passes = Passes(load_model(folder, lambda _done, _total: None), args.context, args.pass_len)
        rng = random.Random(7)
        kept = range(1, args.pass_len)
        works = [passes.one, passes.plain, passes.recorded]
        works += [lambda n=n: passes.rewound(n) for n in kept]
        works.append(lambda: passes.rewound(drawn_kept(rng, args.pass_len, args.accepted)))
        one, plain, recorded, *rewound, drawn = paired(passes, works, args.pairs)
    print(
        f"one token {median(one) * 1e3:.1f} ms, {args.pass_len} tokens {median(plain) * 1e3:.1f} ms"
    )
    print(f"recording {more(recorded, plain) / median(plain):+.2%} of a pass")
    for count, taken in zip(kept, rewound, strict=True):
        print(f"rewinding, {count} kept: {more(taken, recorded) / median(one):+.2%} of a step")
    print(f"rewinding, as drawn: {more(drawn, recorded) / median(one):+.2%} of a step")


if __name__ == "__main__":
    main()
