"""Cost of keeping state during a chat: capturing snapshots, publishing and restoring.

    python -m tests.benchmarks.capture [--only turns decode restore] [--model DIR] [--reps 10]

turns    time spent on capturing and publishing, divided by the time of the turn, in conversations
         of 200 and of 8,000 tokens
decode   time of a 2,000-token answer with captures, divided by its time without captures. A second
         figure shows the noise: the time of one run with captures, divided by that of another.
restore  time to restore 4,000 tokens with the layout of Qwen3.5-4B (8 attention layers, 32 KiB of
         K/V per token). In the first row, tokens are restored from the live cache. In the second
         row, they are restored from the radix tree; this time is divided by the time that
         mx.concatenate takes to concatenate the same K/V.

Prints one JSON line of medians per measurement. "held" is true if the first figure is within
"limit". Exit status 0 if all limits are held.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import mlx.core as mx
from mlx_lm.models.cache import ArraysCache, KVCache

from app.cli.client import load_model
from engine.cache import kv
from engine.cache.kv import KvArrays
from engine.cache.layout import measure_layout
from engine.cache.points import PointKind
from engine.cache.prefix_cache import Lease, PrefixCache
from engine.cache.snapshot import Snapshot
from engine.cache.trees import arrays_in, evaluate, tree_bytes
from engine.config import EngineConfig
from engine.events import RequestFailed, RequestFinished, Submit
from engine.types import ConversationId, ForcedReply, Message, Request, RequestId
from tests.fakes.asking import cache_of, reply_of, user
from tests.fakes.inline_engine import InlineClient
from tests.fakes.tiny_model import Template, build_tiny

FILLER = "The quick brown fox jumps over the lazy dog, and the dog sleeps on. "
ANSWER = "Of course. In other words, the function returns the sum of both of its arguments. "

HISTORIES = (200, 8000)
ANSWER_LEN = 2000
RESTORED_LEN = 4000
# The layout of Qwen3.5-4B. KV_SHAPE is the shape of a token's keys in one attention layer,
# STATE_SHAPE the shape of the state in one recurrent layer.
NUM_KV, KV_SHAPE = 8, (1, 4, 256)
NUM_RECURRENT, STATE_SHAPE = 24, (1, 32, 128, 128)
SPAN_LEN = 100  # tokens per node of the radix tree


@dataclass(slots=True)
class Stopwatch:
    """Adds up the time spent in the functions that are wrapped with `around`."""

    seconds: float = 0.0

    def around(self, function: Callable[..., object]) -> Callable[..., object]:
        def timed(*args: object, **options: object) -> object:
            start = time.perf_counter()
            result = function(*args, **options)
            self.seconds += time.perf_counter() - start
            return result

        return timed


@contextmanager
def replaced(owner: object, **functions: object) -> Generator[None]:
    """Replace methods of `owner` inside the context."""
    before = {name: getattr(owner, name) for name in functions}
    for name, function in functions.items():
        setattr(owner, name, function)
    yield
    for name, function in before.items():
        setattr(owner, name, function)


class CapturedChat:
    """A conversation that grows with each message. The engine runs on the calling thread."""

    def __init__(self, client: InlineClient, name: str) -> None:
        self._client, self._name = client, name
        self._messages: list[Message] = []
        self.num_tokens = 0

    def send(self, text: str, *, num_tokens: int) -> float:
        """Send a message, force a reply of `num_tokens` tokens, and return the seconds for both."""
        self._messages.append(user(text))
        request = Request(
            request_id=RequestId(self._name),
            conversation_id=ConversationId(self._name),
            messages=tuple(self._messages),
            new_messages=frozenset({len(self._messages) - 1}),
            max_tokens=num_tokens,
            forced=ForcedReply(text=ANSWER * (num_tokens // 8 + 1)),
        )
        start = time.perf_counter()
        self._client.send(Submit(request, start))
        # The engine step that emits RequestFinished has also published the request.
        while not isinstance(event := self._client.next_event(), RequestFinished):
            assert not isinstance(event, RequestFailed), event
        seconds = time.perf_counter() - start
        assert event.usage.output_tokens == num_tokens
        self._messages.append(reply_of(event))
        self.num_tokens = len(event.prompt_ids) + num_tokens
        return seconds


Row = dict[str, object]


def held_row(name: str, value: float, limit: float, **beside: object) -> Row:
    """Return a row of output. "held" is True if the figure is within its limit."""
    return {name: round(value, 4), "limit": limit, "held": value <= limit, **beside}


def time_turns(client: InlineClient, reps: int) -> Iterator[Row]:
    """Measure short turns after a short history and after a long history."""
    kept_ms: dict[int, float] = {}
    for history in HISTORIES:
        chat = CapturedChat(client, f"{history}")
        while chat.num_tokens < history - 100:
            chat.send(f"{chat.num_tokens} {FILLER * min(8, history // 100)}", num_tokens=20)
        rows = [_time_turn(client, chat, rep) for rep in range(reps + 1)][1:]
        kept_ms[history] = median(kept for kept, _ in rows) * 1e3
        yield held_row(
            "share",
            median(kept / turn for kept, turn in rows),
            0.03,
            history=history,
            capture_and_publish_ms=round(kept_ms[history], 3),
            turn_ms=round(median(turn for _, turn in rows) * 1e3, 1),
        )
    short, long = (kept_ms[history] for history in HISTORIES)
    yield held_row("long_to_short", long / short, 1.5)


def _time_turn(client: InlineClient, chat: CapturedChat, rep: int) -> tuple[float, float]:
    cache, watch = cache_of(client), Stopwatch()
    with replaced(
        cache,
        capture_snapshot=watch.around(cache.capture_snapshot),
        publish=watch.around(cache.publish),
    ):
        turn = chat.send(f"{rep} {ANSWER}", num_tokens=32)
    return watch.seconds, turn


def time_decoding(client: InlineClient, reps: int) -> Iterator[Row]:
    """Measure the same long answer with captures, without captures, and with captures again."""
    cache = cache_of(client)

    def nothing(lease: Lease, kind: PointKind, logits: mx.array | None = None) -> Snapshot:
        return Snapshot(lease.hot.num_tokens, kind, ())

    ratios: list[float] = []
    same: list[float] = []
    for rep in range(reps + 1):
        with_captures = CapturedChat(client, f"on {rep}").send("Go on.", num_tokens=ANSWER_LEN)
        with replaced(cache, capture_snapshot=nothing):
            without = CapturedChat(client, f"off {rep}").send("Go on.", num_tokens=ANSWER_LEN)
        again = CapturedChat(client, f"again {rep}").send("Go on.", num_tokens=ANSWER_LEN)
        if rep:
            ratios.append(with_captures / without)
            same.append(with_captures / again)
    yield held_row(
        "time_with_to_without",
        median(ratios),
        1.03,
        answer=ANSWER_LEN,
        time_with_to_with=round(median(same), 3),
    )


def new_caches() -> list[object]:
    """Return empty caches with the layers of Qwen3.5-4B."""
    return [*(KVCache() for _ in range(NUM_KV)), *(ArraysCache(2) for _ in range(NUM_RECURRENT))]


def feed(caches: Sequence[object], num_tokens: int) -> None:
    """Fill the caches as a forward pass over `num_tokens` tokens does."""
    batch, heads, dim = KV_SHAPE
    for cache in caches:
        if isinstance(cache, KVCache):
            fed = mx.random.normal((batch, heads, num_tokens, dim)).astype(mx.bfloat16)
            cache.update_and_fetch(fed, fed + 1)  # pyright: ignore[reportUnknownMemberType]
        elif isinstance(cache, ArraysCache):
            # A recurrent layer makes a new array at each step. Its values do not matter here.
            cache[1] = mx.zeros(STATE_SHAPE)
    evaluate([vars(cache) for cache in caches])


def time_restoring(reps: int) -> Iterator[Row]:
    """Measure the restore of a long conversation, first from its live cache, then from the tree."""
    probe = new_caches()
    feed(probe, 1)
    layout = measure_layout(probe, 1, tree_bytes)
    cache = PrefixCache(layout, budget_bytes=1 << 40, max_hot=1)
    name, token_ids = ConversationId("A"), list(range(RESTORED_LEN))
    room = RESTORED_LEN + 512

    def acquire() -> Lease:
        return cache.acquire(name, (*token_ids, 0), new_caches, room=room, side=False)

    lease = acquire()
    for start in range(0, RESTORED_LEN, SPAN_LEN):
        feed(lease.hot.caches, SPAN_LEN)
        lease.hot.commit(token_ids[start : start + SPAN_LEN])
        cache.capture_snapshot(lease, PointKind.TURN)
    cache.publish(lease)
    hot = [_time_acquire(cache, acquire) for _ in range(reps + 1)][1:]
    yield held_row("hot_ms", median(hot) * 1e3, 1.0, tokens=RESTORED_LEN)

    ratios: list[float] = []
    times: list[float] = []
    for rep in range(reps + 1):
        cache.eviction.evict_hot()
        spans = [
            node.span for node in sorted(cache.holdings.tree.nodes(), key=lambda node: node.end)
        ]
        least = _time_concatenating([span for span in spans if isinstance(span, KvArrays)], room)
        before = cache.holdings.counters.copied_bytes
        times.append(_time_acquire(cache, acquire))
        copied = cache.holdings.counters.copied_bytes - before
        assert copied == RESTORED_LEN * layout.kv_bytes_per_token
        if rep:
            ratios.append(times[-1] / least)
    yield held_row(
        "tree_to_concatenating",
        median(ratios),
        1.3,
        spans=RESTORED_LEN // SPAN_LEN,
        ms=round(median(times[1:]) * 1e3, 1),
    )


def _time_acquire(cache: PrefixCache, acquire: Callable[[], Lease]) -> float:
    start = time.perf_counter()
    lease = acquire()
    seconds = time.perf_counter() - start
    assert lease.restored == RESTORED_LEN
    cache.publish(lease)
    return seconds


def _time_concatenating(spans: Sequence[KvArrays], room: int) -> float:
    """Return the seconds to concatenate the arrays of all spans. No restore can be faster."""
    columns = list(zip(*(arrays_in(span.leaves) for span in spans), strict=True))
    missing = -(-room // kv.STEP) * kv.STEP - RESTORED_LEN
    start = time.perf_counter()
    for column in columns:
        *lead, _, dim = column[0].shape
        padding = mx.zeros((*lead, missing, dim), column[0].dtype)
        evaluate(mx.concatenate([*column, padding], axis=-2))
    return time.perf_counter() - start


def main() -> int:
    whats = ("turns", "decode", "restore")
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="+", choices=whats, default=whats)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--reps", type=int, default=10)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = args.model or build_tiny("qwen3_5", Path(folder) / "qwen3_5", Template.KEEPING)
        client = InlineClient(EngineConfig(use_openblas=False, idle_work=False))
        load_model(client, model, lambda _: None)
        benchmarks = {
            "turns": lambda: time_turns(client, args.reps),
            "decode": lambda: time_decoding(client, args.reps),
            "restore": lambda: time_restoring(args.reps),
        }
        held = True
        for what in args.only:
            for row in benchmarks[what]():
                print(json.dumps({"what": what, **row}), flush=True)
                held = held and row["held"] is True
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
