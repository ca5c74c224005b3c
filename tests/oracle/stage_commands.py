"""Random commands of rank 0 to its followers, each compared with what the followers hold.

    python -m tests.soak commands=2000

`StageCommands` uses the objects of engine/pipeline/far.py as the prefix cache and the decoder do:
passes of one conversation and of several, passes sent ahead, cuts, copies, splits, captured and
restored states. After each operation every follower must hold exactly the bytes of rank 0's row for it,
and one object for each object of rank 0.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import mlx.core as mx

from engine.config import EngineConfig
from engine.pipeline.far import FollowerState, StageCaches, StageSpan
from engine.pipeline.messages import Op
from engine.questions import Evict, EvictWhat
from tests.fakes.asking import ask, reply_of, user
from tests.fakes.staged_engine import StagedClient
from tests.fakes.tiny_model import CONFIGS, Template, build_tiny

# Number of layers of each rank, rank 0 first, by model. In qwen3_5_moe, rank 1 has recurrent layers
# only.
SPLITS = {
    "qwen3_5_moe": (1, 1),
    "qwen3_5": (1, 1),
    "lfm2": (1, 2),
    "falcon_h1": (1, 1),
    "mamba2": (2, 2),
    "gemma3": (1, 1),
    "llama": (1, 1),
    "deep_llama": (2, 1, 1),
}
CONFIG = EngineConfig(
    use_openblas=False, idle_work=False, looks_ahead=False, cell_len=16, stride_len=32
)
_MAX_TOKENS = 700  # of one conversation: buffers grow in steps of 256
_MAX_OBJECTS = 6  # of each kind


@dataclass(slots=True, eq=False)
class _Live:
    """The live caches of a conversation, and the tokens that they hold."""

    caches: StageCaches
    tokens: list[int] = field(default_factory=list[int])


@dataclass(frozen=True, slots=True, eq=False)
class _Span:
    """Copied K/V of the tokens path[start:]."""

    span: StageSpan
    path: tuple[int, ...]
    start: int


@dataclass(frozen=True, slots=True, eq=False)
class _State:
    """A captured state after the tokens of a path."""

    state: FollowerState
    path: tuple[int, ...]


class StageCommands:
    """Random operations on the followers of a loaded model."""

    def __init__(self, client: StagedClient, seed: int) -> None:
        model = client.core.model
        assert model is not None
        self._client = client
        self._relay = client.opener.relay
        self._layouts = model.layout.stages[1:]
        self._can_merge = model.ways.can_merge
        self._needs_state = any(layout.num_aux for layout in self._layouts)
        self._rng = random.Random(seed)
        self._live: list[_Live] = []
        self._spans: list[_Span] = []
        self._states: list[_State] = []
        self._at_start = client.num_held()
        self.num_done: Counter[str] = Counter()

    def play(self, num_operations: int) -> None:
        """Make operations. Assert after each that the followers hold what rank 0 counts."""
        kinds: list[Callable[[], bool]] = [
            *(self._create, self._feed, self._feed, self._feed_ahead, self._drop_ahead),
            *(self._cut, self._reserve, self._copy, self._split, self._fill, self._capture),
            *(self._capture, self._group, self._free, self._free),
        ]
        while self.num_done.total() < num_operations:
            kind = self._rng.choice(kinds)
            if kind():
                self.num_done[kind.__name__.strip("_")] += 1
                self._compare()
        for held in (self._live, self._spans, self._states):
            held.clear()
        assert self._client.num_held() == self._at_start

    def _compare(self) -> None:
        num_objects = len(self._live) + len(self._spans) + len(self._states)
        kv_tokens = sum(live.caches.capacity for live in self._live)
        kv_tokens += sum(len(span.path) - span.start for span in self._spans)
        counts = self._relay.ask(Op.COUNT)
        for index, layout in enumerate(self._layouts):
            counted = counts[index + 1]
            row = kv_tokens * layout.kv_bytes_per_token
            row += sum(one.state.stage_bytes[index] for one in self._states)
            assert counted["held"] == row, (index + 1, counted, row)
            assert counted["objects"] == num_objects + self._at_start[index]

    # Operations. Each returns False if nothing was there to do it with.

    def _create(self) -> bool:
        if len(self._live) >= _MAX_OBJECTS:
            return False
        self._live.append(_Live(StageCaches(self._relay, self._layouts)))
        return True

    def _feed(self) -> bool:
        live, ids = self._to_feed()
        if live is None:
            return False
        live.caches.run_pass(mx.array([ids], mx.int32))
        live.tokens += ids
        return True

    def _feed_ahead(self) -> bool:
        live, ids = self._to_feed()
        if live is None:
            return False
        for part in (ids, ids[:1]):
            live.caches.send_ahead(mx.array([part], mx.int32))
            live.caches.run_pass(mx.array([part], mx.int32))
            live.tokens += part
        return True

    def _drop_ahead(self) -> bool:
        """Send a pass ahead whose result is not wanted, and go back to the state before it."""
        live, ids = self._to_feed()
        if live is None:
            return False
        before = live.caches.capture() if self._needs_state else None
        live.caches.send_ahead(mx.array([ids], mx.int32))
        live.caches.cut(len(live.tokens))
        if before is not None:
            live.caches.restore(before)
        return True

    def _to_feed(self) -> tuple[_Live | None, list[int]]:
        ids = [self._rng.randrange(400) for _ in range(self._rng.choice([1, 7, 60, 200]))]
        able = [live for live in self._live if len(live.tokens) + len(ids) < _MAX_TOKENS]
        return self._rng.choice(able) if able else None, ids

    def _cut(self) -> bool:
        live = self._rng.choice(self._live) if self._live else None
        if live is None:
            return False
        if not self._needs_state:
            self._cut_to(live, self._rng.randrange(len(live.tokens) + 1))
            return True
        usable = [one for one in self._states if _starts_with(live.tokens, one.path)]
        if not usable:
            return False
        chosen = self._rng.choice(usable)
        self._cut_to(live, len(chosen.path))
        live.caches.restore(chosen.state)
        return True

    def _cut_to(self, live: _Live, num_tokens: int) -> None:
        live.caches.cut(num_tokens)
        del live.tokens[num_tokens:]

    def _reserve(self) -> bool:
        held = [live for live in self._live if live.tokens]
        if held:
            live = self._rng.choice(held)
            live.caches.reserve(len(live.tokens) + self._rng.randrange(1, 600))
        return bool(held)

    def _copy(self) -> bool:
        held = [live for live in self._live if live.tokens]
        if not held or len(self._spans) >= _MAX_OBJECTS:
            return False
        live = self._rng.choice(held)
        start = self._rng.choice([0, 0, self._rng.randrange(len(live.tokens))])
        end = self._rng.randrange(start + 1, len(live.tokens) + 1)
        self._spans.append(_Span(live.caches.copy(start, end), tuple(live.tokens[:end]), start))
        return True

    def _split(self) -> bool:
        able = [one for one in self._spans if len(one.path) - one.start > 1]
        if not able:
            return False
        one = self._rng.choice(able)
        self._spans.remove(one)
        at = self._rng.randrange(1, len(one.path) - one.start)
        head, tail = one.span.split(at)
        middle = one.start + at
        self._spans += [
            _Span(head, one.path[:middle], one.start),
            _Span(tail, one.path, middle),
        ]
        return True

    def _fill(self) -> bool:
        """Fill live caches up from a span or from other live caches, and restore a state there."""
        if not self._live:
            return False
        live = self._rng.choice(self._live)
        ends = [one.path for one in self._states] if self._needs_state else None
        sources = [(one.span, one.path, one.start) for one in self._spans]
        sources += [(one.caches, tuple(one.tokens), 0) for one in self._live if one is not live]
        for source, path, start in self._rng.sample(sources, len(sources)):
            common = _common(live.tokens, path)
            usable = [
                end
                for end in range(common + 1, len(path) + 1)
                if common >= start and (ends is None or path[:end] in ends)
            ]
            if usable:
                end = self._rng.choice(usable)
                live.caches.cut(common)
                room = self._rng.choice([end, end + 300])
                live.caches.append([source.range(common - start, end - start)], end, room)
                live.tokens[:] = path[:end]
                if ends is not None:
                    live.caches.restore(self._states[ends.index(path[:end])].state)
                return True
        return False

    def _capture(self) -> bool:
        held = [live for live in self._live if live.tokens]
        if not held or not self._needs_state or len(self._states) >= _MAX_OBJECTS:
            return False
        live = self._rng.choice(held)
        self._states.append(_State(live.caches.capture(), tuple(live.tokens)))
        return True

    def _group(self) -> bool:
        able = [live for live in self._live if 0 < len(live.tokens) < _MAX_TOKENS]
        if not self._can_merge or len(able) < 2:
            return False
        rows = self._rng.sample(able, self._rng.randrange(2, min(3, len(able)) + 1))
        group = rows[0].caches.merged([row.caches for row in rows], [0] * len(rows))
        for _ in range(self._rng.randrange(1, 4)):
            ids = [[self._rng.randrange(400)] for _ in rows]
            group.run_pass(mx.array(ids, mx.int32))
            for row, fed in zip(rows, ids, strict=True):
                row.tokens += fed
        for number in range(len(rows)):
            group.hand_back(number)
        return True

    def _free(self) -> bool:
        held = self._rng.choice([self._live, self._spans, self._states])
        if held:
            held.pop(self._rng.randrange(len(held)))
        return bool(held)


def play_turns(client: StagedClient, num_turns: int, seed: int) -> None:
    """Ask in eight chats, some questions again or in another wording. Assert that nothing stays."""
    rng = random.Random(seed)
    at_start = client.num_held()
    for number in range(num_turns):
        chat = rng.choice("ABCDEFGH")
        first = user(f"{chat} {rng.randrange(3)} small boats")
        if rng.random() < 0.5:
            ask(client, first, chat=chat)
        else:
            reply = reply_of(ask(client, first, chat=chat))
            ask(client, first, reply, user(f"{number} " + "word " * rng.randrange(30)), chat=chat)
        if number % 50 == 49:
            client.ask(Evict(EvictWhat.ALL))
            client.run_until_idle()
            assert client.num_held() == at_start, number


def play_commands(folder: Path, number: int) -> bool:
    """Make operations on every tiny model, then a quarter as many turns. Print a tally of each."""
    for name, layers in SPLITS.items():
        started = time.monotonic()
        client = StagedClient(build_tiny(name, folder / name, Template.KEEPING), layers, CONFIG)
        commands = StageCommands(client, seed=number)
        commands.play(number)
        num_turns = -(-number // 4)
        play_turns(client, num_turns, seed=number)
        kinds = ", ".join(f"{kind} {done}" for kind, done in sorted(commands.num_done.items()))
        print(
            f"{name:<12} {commands.num_done.total()} operations, {num_turns} turns held"
            f"  {time.monotonic() - started:.0f} s  ({kinds})",
            flush=True,
        )
    assert SPLITS.keys() == CONFIGS.keys()
    return True


def _common(tokens: list[int], path: tuple[int, ...]) -> int:
    """Return the number of equal tokens at the start of both."""
    pairs = zip(tokens, path, strict=False)
    return next(
        (at for at, (one, other) in enumerate(pairs) if one != other), min(len(tokens), len(path))
    )


def _starts_with(tokens: list[int], path: tuple[int, ...]) -> bool:
    return tuple(tokens[: len(path)]) == path
