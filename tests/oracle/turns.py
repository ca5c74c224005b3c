"""A long run of turns in many conversations under a cache budget, to see if memory grows.

Python's garbage collector is off during the run, because evicted state must be freed at once and
not at the next collection. test_turns.py plays 20 turns, `python -m tests.soak turns` 2,000.
"""

from __future__ import annotations

import gc
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import mlx.core as mx
import psutil

from engine.config import EngineConfig
from engine.types import SamplingParams
from tests.oracle.flight import How
from tests.oracle.harness import Harness

NUM_CHATS = 24
# A conversation with this many turns is deleted, and a new one takes its place.
MAX_TURNS = 8
SAMPLE_EVERY = 10  # number of turns between two measurements of memory
CHECK_EVERY = 4  # every fourth turn is compared with the bare model
WORDS = ("boat", "weather", "small", "list", "dog", "fox", "quick", "please", "thank", "about")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The memory held between two turns, in bytes."""

    turn: int
    device: int  # all arrays of MLX, weights included
    process: int  # resident memory of the process
    ledger: int  # total of the prefix cache's ledger


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnsReport:
    """The result of a long run.

    A slope is the growth in bytes per turn over the last three quarters of the run.
    """

    turns: int
    checked: int  # number of answers that were compared with the bare model's
    evictions: int
    budget: int
    last: Sample
    # Largest number of bytes held by MLX that are neither weights nor in the ledger.
    unaccounted: int
    device_slope: float
    process_slope: float
    ledger_slope: float


def run_turns(
    folder: Path, *, turns: int, budget: int, seed: int, progress: Callable[[Sample], None]
) -> TurnsReport:
    """Play turns of many conversations, popular ones most often, and report the memory held."""
    config = EngineConfig(
        use_openblas=False, cache_budget_bytes=budget, max_hot=3, saves_battery=False
    )
    harness = Harness(config)
    harness.load(folder)
    gc.collect()
    weights = mx.get_active_memory()
    samples: list[Sample] = []
    gc.disable()
    try:
        for turn in _turns(harness, random.Random(seed), turns):
            harness.await_idle()
            samples.append(_sample(harness, turn))
            progress(samples[-1])
    finally:
        gc.enable()
    return _report(harness, samples, weights, turns=turns, budget=budget)


def _turns(harness: Harness, rng: random.Random, turns: int) -> Iterator[int]:
    """Play the turns; after every SAMPLE_EVERY turns, yield the number of turns played."""
    ages = dict.fromkeys((f"chat {i}" for i in range(NUM_CHATS)), 0)
    shares = [1 / (rank + 1) for rank in range(NUM_CHATS)]
    for turn in range(turns):
        (chat,) = rng.choices(list(ages), shares)
        if ages[chat] == MAX_TURNS:
            harness.delete(chat)
            ages[chat] = 0
        _take_turn(harness, rng, chat, turn)
        ages[chat] += 1
        harness.settle()
        harness.check()
        if (turn + 1) % SAMPLE_EVERY == 0:
            yield turn + 1


def _take_turn(harness: Harness, rng: random.Random, chat: str, turn: int) -> None:
    how = How(
        sampling=SamplingParams(temperature=0.8, seed=turn),
        max_tokens=6,
        stop_after=rng.choice([None, None, None, 2]),
        is_checked=turn % CHECK_EVERY == 0,
    )
    text = f"{turn} {' '.join(rng.choices(WORDS, k=rng.randint(3, 9)))}"
    match rng.choices(["send", "edit", "regenerate"], [6, 2, 2])[0]:
        case "edit":
            harness.edit(chat, rng.randrange(MAX_TURNS), text, how, is_fresh=False)
        case "regenerate" if harness.people.chat(chat).nodes:
            harness.regenerate(chat, rng.randrange(MAX_TURNS), how)
        case _:
            harness.send(chat, text, how, is_fresh=False)


def _sample(harness: Harness, turn: int) -> Sample:
    assert harness.cache is not None
    # Do not count the freed buffers that MLX keeps for reuse; they have a limit of their own.
    mx.clear_cache()
    return Sample(
        turn=turn,
        device=mx.get_active_memory(),
        process=psutil.Process().memory_info().rss,
        ledger=harness.cache.holdings.ledger().total_bytes,
    )


def _report(
    harness: Harness, samples: Sequence[Sample], weights: int, *, turns: int, budget: int
) -> TurnsReport:
    assert harness.cache is not None
    warm = samples[len(samples) // 4 :]
    at = [sample.turn for sample in warm]
    report = TurnsReport(
        turns=turns,
        checked=harness.num_checked,
        evictions=harness.cache.holdings.counters.evictions,
        budget=budget,
        last=samples[-1],
        unaccounted=max(sample.device - weights - sample.ledger for sample in samples),
        device_slope=_slope(at, [sample.device for sample in warm]),
        process_slope=_slope(at, [sample.process for sample in warm]),
        ledger_slope=_slope(at, [sample.ledger for sample in warm]),
    )
    harness.close()
    return report


def _slope(x: Sequence[float], y: Sequence[float]) -> float:
    """Return the slope of the least-squares line through the points."""
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    spread = sum((value - mean_x) ** 2 for value in x)
    return sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)) / spread
