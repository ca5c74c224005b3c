"""Decode speed of one answer, of several at once, and of one while a prompt is read.

    python -m tests.benchmarks.decoding [--only single rows ahead gap freed] [--model DIR] [--reps 10]
        [--prompt 4000] [--gap 0.2]

single  speed of the engine including its events, divided by the speed of mlx_lm.stream_generate on
        the same weights. A second figure shows the noise: the speed of one run of the engine,
        divided by that of another. One row is for decoding, one for prefill.
rows    speed of four answers together, divided by the speed of one answer, and divided by the speed
        of four answers in mlx-lm's BatchGenerator
ahead   speed of an answer with look-ahead (step n+1 starts before step n is read), divided by the
        speed of the same answer without look-ahead
gap     an answer is decoded while a long prompt is read in another conversation. Two figures: the
        95th percentile of the time between two tokens of the answer; and the time to read the
        prompt, divided by the sum of its time without the answer and the time of the decode steps
freed   speed of prompts of several lengths and their answers with the model's limit of freed buffers,
        divided by their speed with the highest limit (1 GB). A second figure shows the noise

Speeds are tokens per second. Prints one JSON line of medians per row. Without --model the model is
a tiny random Qwen3.5. Replies are greedy. For a real model on Linux set
LD_PRELOAD=libopenblas.so.0: a library that is loaded after mlx has no effect.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from statistics import harmonic_mean, median
from typing import Any, cast

import mlx.core as mx
from mlx_lm.generate import (
    BatchGenerator,
    stream_generate,  # pyright: ignore[reportUnknownVariableType] — untyped options
)
from mlx_lm.tokenizer_utils import (
    load as load_tokenizer,  # pyright: ignore[reportUnknownVariableType] — untyped path
)

from app.cli.client import load_model
from engine.config import EngineConfig
from engine.events import Cancel, Event, RequestFinished, Submit, TextDelta
from engine.types import ConversationId, ForcedReply, Request, RequestId, SamplingParams
from engine.usage import Usage
from tests.fakes.asking import user
from tests.fakes.inline_engine import InlineClient
from tests.fakes.tiny_model import Template, build_tiny

FILLER = "The quick brown fox jumps over the lazy dog, and the dog sleeps on. "
WARM_UPS = 2
NUM_TOKENS = 128
NUM_ROWS = 4

Row = dict[str, object]


class Bench:
    """An engine with a loaded model. mlx-lm can also run the model without the engine."""

    def __init__(self, folder: Path, config: EngineConfig) -> None:
        self.client = InlineClient(config)
        load_model(self.client, folder, lambda _: None)
        model = self.client.core.model
        assert model is not None
        self.model: Any = vars(model.adapter)["_model"]
        self.tokenizer = load_tokenizer(folder)
        self.prompts = model.prompts
        # The end token is outside the vocabulary, so that all answers have the same length.
        self.tokenizer.eos_token_ids = {model.vocab_size}
        markers = self.prompts.tokenizer.markers
        self.prompts.tokenizer.markers = replace(markers, eos_ids=frozenset({model.vocab_size}))
        self._count = 0

    def request(self, text: str, num_tokens: int) -> Request:
        """Return a request in a new conversation."""
        self._count += 1
        return Request(
            request_id=RequestId(f"{self._count}"),
            conversation_id=ConversationId(f"{self._count}"),
            messages=(user(f"{self._count} {text}"),),
            new_messages=frozenset({0}),
            sampling=SamplingParams(temperature=0.0),
            max_tokens=num_tokens,
        )

    def again(self, request: Request, num_tokens: int) -> Request:
        """Return a request for one more answer to a prompt that the engine has already read."""
        self._count += 1
        return replace(request, request_id=RequestId(f"{self._count}"), max_tokens=num_tokens)

    def prompt_ids(self, request: Request) -> list[int]:
        prompt = self.prompts.build(request.messages, thinking=None, keep_thinking=False)
        return list(prompt.token_ids)

    def send(self, request: Request) -> None:
        self.client.send(Submit(request, time.perf_counter()))

    def answer(self, requests: Sequence[Request]) -> list[tuple[float, Event]]:
        """Send requests, wait until all are answered, and return all events with their times."""
        for request in requests:
            self.send(request)
        events: list[tuple[float, Event]] = []
        num_finished = 0
        while num_finished < len(requests):
            events.append(self.client.next_timed())
            num_finished += isinstance(events[-1][1], RequestFinished)
        return events


def finished_in(events: Sequence[tuple[float, Event]]) -> list[RequestFinished]:
    return [event for _, event in events if isinstance(event, RequestFinished)]


def time_single(bench: Bench, reps: int) -> Iterator[Row]:
    """Measure the same prompt on the engine, on mlx-lm, and on the engine again."""
    decode: list[tuple[float, float, float]] = []
    prefill: list[tuple[float, float, float]] = []
    for _ in range(reps + WARM_UPS):
        request = bench.request(FILLER * 10, NUM_TOKENS)
        token_ids = bench.prompt_ids(request)
        (first,) = finished_in(bench.answer([request]))
        theirs = _generate(bench, token_ids)
        (again,) = finished_in(bench.answer([bench.request(FILLER * 10, NUM_TOKENS)]))
        decode.append((first.usage.decode_tok_s, theirs.decode, again.usage.decode_tok_s))
        ours, ours_again = (
            len(one.prompt_ids) / one.usage.prefill_ms * 1e3 for one in (first, again)
        )
        prefill.append((ours, theirs.prefill, ours_again))
    for what, rows in (("decode", decode), ("prefill", prefill)):
        kept = rows[WARM_UPS:]
        # The engine runs before and after mlx-lm, so that a drift of the speed affects both alike.
        ratios = [harmonic_mean((ours, again)) / theirs for ours, theirs, again in kept]
        yield {
            f"{what}_to_mlx_lm": round(median(ratios), 3),
            "to_itself": round(median(ours / again for ours, _, again in kept), 3),
            "tok_s": round(median(ours for ours, _, _ in kept), 1),
        }


@dataclass(frozen=True, slots=True)
class _Speed:
    """The speed of mlx-lm in tokens per second, measured with the clock that the engine uses."""

    prefill: float
    decode: float


def _generate(bench: Bench, token_ids: list[int]) -> _Speed:
    """Measure mlx-lm's answer.

    The speed that mlx-lm itself reports is too high: it counts the first token, but leaves out the
    time of this token.
    """
    start = time.perf_counter()
    generated = stream_generate(bench.model, bench.tokenizer, token_ids, max_tokens=NUM_TOKENS)
    times = [time.perf_counter() for _ in generated]
    return _Speed(len(token_ids) / (times[0] - start), (len(times) - 1) / (times[-1] - times[0]))


def time_rows(bench: Bench, reps: int) -> Iterator[Row]:
    """Measure four answers on the engine, four in mlx-lm's batch, then one on the engine.

    The four prompts have about 100 to 800 tokens.
    """
    rates: list[tuple[float, float, float]] = []
    for _ in range(reps + WARM_UPS):
        requests = [bench.request(FILLER * (6 + 14 * row), 1) for row in range(NUM_ROWS)]
        bench.answer(requests)
        four = _rate(bench.answer([bench.again(request, NUM_TOKENS) for request in requests]))
        theirs = _batch_rate(bench, [bench.prompt_ids(request) for request in requests])
        one = _rate(bench.answer([bench.request(FILLER * 3, NUM_TOKENS)]))
        rates.append((four, theirs, one))
    kept = rates[WARM_UPS:]
    yield {
        "four_to_one": round(median(four / one for four, _, one in kept), 3),
        "four_to_mlx_lm": round(median(four / theirs for four, theirs, _ in kept), 3),
        "tok_s": round(median(four for four, _, _ in kept), 1),
    }


def _rate(events: Sequence[tuple[float, Event]]) -> float:
    """Return the tokens per second of all answers together, during the time when all run."""
    deltas: dict[str, list[tuple[float, int]]] = {}
    for at, event in events:
        if isinstance(event, TextDelta):
            deltas.setdefault(event.request_id, []).append((at, event.num_tokens))
    assert len(deltas) == len(finished_in(events))
    start = max(times[0][0] for times in deltas.values())
    end = min(times[-1][0] for times in deltas.values())
    rate = 0.0
    for times in deltas.values():
        # Measure from delta to delta: a token that ends inside a character emits no delta.
        first, *_, last = [one for one in times if start <= one[0] <= end]
        rate += (last[1] - first[1]) / (last[0] - first[0])
    return rate


def _batch_rate(bench: Bench, prompts: list[list[int]]) -> float:
    generator = BatchGenerator(bench.model, max_tokens=NUM_TOKENS)
    generator.insert(prompts)
    num_tokens, start, end = 0, 0.0, 0.0
    running = set[int]()
    while not end:
        _, responses = cast("tuple[Any, list[Any]]", generator.next())
        now = time.perf_counter()
        if start:
            num_tokens += len(responses)
        running |= {response.uid for response in responses}
        if len(running) == len(prompts) and not start:
            start = now
        if any(response.finish_reason for response in responses):
            end = now
    generator.close()
    return num_tokens / (end - start)


def time_ahead(folder: Path, config: dict[str, Any], reps: int) -> Iterator[Row]:
    """Measure the same answer with look-ahead and without."""
    benches = [Bench(folder, EngineConfig(**config, looks_ahead=on)) for on in (True, False)]
    ratios: list[float] = []
    for rep in range(reps + WARM_UPS):
        ends = [
            finished_in(bench.answer([bench.request(FILLER, NUM_TOKENS)]))[0] for bench in benches
        ]
        assert ends[0].reply.token_ids == ends[1].reply.token_ids
        if rep >= WARM_UPS:
            ratios.append(ends[0].usage.decode_tok_s / ends[1].usage.decode_tok_s)
    yield {"ahead_to_not": round(median(ratios), 3), "same_tokens": True}


def time_gap(bench: Bench, num_prompt: int, reps: int) -> Iterator[Row]:
    """Measure the time between the tokens of an answer while a long prompt is read."""
    cache = bench.client.core.cache
    assert cache is not None
    text = FILLER * (num_prompt // 16)
    rows: list[tuple[float, float, float]] = []
    for _ in range(reps):
        (alone,) = finished_in(bench.answer([bench.request(text, 1)]))
        writing = replace(bench.request("Tell me.", 4000), forced=ForcedReply(text=FILLER * 250))
        bench.send(writing)
        undisturbed = median(_gaps(bench, num_tokens=40)[10:])
        reading = bench.request(text, 1)
        bench.send(reading)
        start = time.perf_counter()
        gaps = _gaps(bench, until=reading.request_id)
        seconds = time.perf_counter() - start
        allowed = alone.usage.prefill_ms / 1e3 + undisturbed * len(gaps)
        rows.append((sorted(gaps)[int(0.95 * (len(gaps) - 1))], seconds / allowed, undisturbed))
        bench.client.send(Cancel(writing.request_id))
        bench.client.run_until_idle()
        cache.evict_all()
    yield {
        "p95_gap_ms": round(median(gap for gap, _, _ in rows) * 1e3, 1),
        "prompt_to_allowed": round(median(ratio for _, ratio, _ in rows), 3),
        "undisturbed_gap_ms": round(median(gap for _, _, gap in rows) * 1e3, 1),
        "prompt": num_prompt,
    }


def _gaps(bench: Bench, *, num_tokens: int = sys.maxsize, until: str = "") -> list[float]:
    """Return the seconds between deltas.

    Stop after `num_tokens` deltas, or when the request `until` ends.
    """
    times: list[float] = []
    while len(times) <= num_tokens:
        at, event = bench.client.next_timed()
        if isinstance(event, RequestFinished) and event.request_id == until:
            break
        if isinstance(event, TextDelta) and event.request_id != until:
            times.append(at)
    return [end - start for start, end in pairwise(times)]


def time_freed(bench: Bench, reps: int) -> Iterator[Row]:
    """Measure the same answers with the model's limit, with the highest one, and as at first."""
    most = EngineConfig().most_freed_bytes
    ours = mx.set_cache_limit(most)
    decode: list[tuple[float, ...]] = []
    prefill: list[tuple[float, ...]] = []
    for _ in range(reps + WARM_UPS):
        runs: list[list[Usage]] = []
        for limit in (ours, most, ours):
            mx.set_cache_limit(limit)
            requests = [bench.request(FILLER * size, 32) for size in (3, 40, 11, 25)]
            runs.append([finished_in(bench.answer([one]))[0].usage for one in requests])
        decode.append(tuple(harmonic_mean([one.decode_tok_s for one in run]) for run in runs))
        prefill.append(tuple(1 / sum(one.prefill_ms for one in run) for run in runs))
    for what, rows in (("decode", decode), ("prefill", prefill)):
        kept = rows[WARM_UPS:]
        ratios = [harmonic_mean((first, again)) / highest for first, highest, again in kept]
        yield {
            f"{what}_to_highest": round(median(ratios), 3),
            "to_itself": round(median(first / again for first, _, again in kept), 3),
            "limit_mb": round(ours / 1e6),
        }


def main() -> int:
    whats = ("single", "rows", "ahead", "gap", "freed")
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="+", choices=whats, default=whats)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--reps", type=int, default=10)
    parser.add_argument("--prompt", type=int, default=4000)
    parser.add_argument("--gap", type=float, default=EngineConfig().max_gap_s)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.model or build_tiny("qwen3_5", Path(temporary) / "m", Template.KEEPING)
        config: dict[str, Any] = {"use_openblas": False, "idle_work": False, "max_gap_s": args.gap}
        bench = Bench(folder, EngineConfig(**config))
        benchmarks = {
            "single": lambda: time_single(bench, args.reps),
            "rows": lambda: time_rows(bench, args.reps),
            "ahead": lambda: time_ahead(folder, config, args.reps),
            "gap": lambda: time_gap(bench, args.prompt, max(1, args.reps // 3)),
            "freed": lambda: time_freed(bench, args.reps),
        }
        for what in args.only:
            for row in benchmarks[what]():
                print(json.dumps({"what": what, **row}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
