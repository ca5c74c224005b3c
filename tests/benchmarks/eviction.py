"""Compares eviction policies: the number of tokens fed under a tight cache budget.

    python -m tests.benchmarks.eviction [--share 0.5] [--seeds N ...] [--keep]

traces/ has five traces of 24 chats with three shared system prompts. The chats are chosen by Zipf's
law; their steps add messages, edit messages, regenerate answers and switch branches. Each trace is
played through the runner and the prefix cache, by the code that plays `rejoinder bench script`. The
first run has no budget. Its working set is the K/V and the resume points that were restored at
least once. The other runs have a budget of `share` times the working set, each with another policy:

ours        the ranking of the engine
LRU         evicts the least recently used snapshot, leaf of the tree or idle live cache
LRU, paths  like LRU, but a use of a resume point counts as a use of all points above it

All policies capture the same resume points, with the same bytes. --seeds plays new traces with
these seeds, --keep writes the five traces again.

The model has the proportions of a real one (a snapshot is as large as the K/V of 1,600 tokens, as
in Qwen3.5-4B) and computes nothing. All lengths, including the snapshot's, are a quarter of real
ones.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from typing_extensions import override

from app.cli.player import ScriptPlayer
from app.cli.processed import ProcessedTokens
from app.cli.script import parse_step
from engine.cache.holdings import Holdings
from engine.cache.hot import KvNode, lender
from engine.cache.layout import Layout
from engine.cache.policy import (
    Evicted,
    EvictHot,
    EvictNode,
    EvictSnapshot,
    Policy,
    Victim,
)
from engine.cache.prefix_cache import PrefixCache
from engine.cache.ranking import CoverageRanking
from engine.commands import Asked, EngineCommands
from engine.config import EngineConfig
from engine.events import Command, Event, RequestFinished, Submit
from engine.models.loader import LoadedModel
from engine.runner.admission import Admission
from engine.runner.drafting import NoDrafts
from engine.runner.feeding import Feeder
from engine.runner.history import History
from engine.runner.planning import PromptPlanner
from engine.runner.runner import Runner
from engine.wanted import Wanted
from tests.fakes.sized_model import load_sized

TRACES = Path(__file__).parent / "traces"
SEEDS = (1, 2, 3, 4, 5)
# Limits of a ratio: tokens fed with our policy, divided by those with the better LRU policy.
MEDIAN_LIMIT, WORST_LIMIT = 0.8, 1.0

SCALE = 4  # token counts of real conversations are divided by SCALE
STATE_TOKENS = 1600 // SCALE
A = TypeVar("A")

CONFIG = EngineConfig(cell_len=512 // SCALE, stride_len=2048 // SCALE, idle_work=False)
# Token limit of a reply. Before a reply starts, the cache reserves room for this number of tokens.
MAX_TOKENS = 512 // SCALE

NUM_STEPS = 240
NUM_CHATS = 24
TOKENS_PER_WORD = 1.5

Step = dict[str, Any]


# Generation of traces.


@dataclass(eq=False)
class TraceTurn:
    """A user message in a chat of a trace. The start of a chat is a turn without a parent."""

    parent: TraceTurn | None
    # All versions of the user message that follows in the chat.
    versions: list[TraceTurn] = field(default_factory=list["TraceTurn"])
    shown: TraceTurn | None = None  # the shown one of `versions`

    def path(self) -> list[TraceTurn]:
        return [] if self.shown is None else [self.shown, *self.shown.path()]

    def add(self) -> None:
        self.shown = TraceTurn(self)
        self.versions.append(self.shown)


class TraceWriter:
    """Writes random traces as steps of `bench script`, with a number of words for each text."""

    def __init__(self, seed: int) -> None:
        self._rng = Random(f"trace {seed}")
        self._chats: dict[str, TraceTurn] = {}
        self._personas = [self._words(700, 0.5) for _ in range(3)]
        self.steps: list[Step] = []

    def write(self) -> list[Step]:
        names = [f"c{number}" for number in range(NUM_CHATS)]
        self._rng.shuffle(names)
        shares = [1 / rank for rank in range(1, NUM_CHATS + 1)]
        turns = 0
        while turns < NUM_STEPS:
            (name,) = self._rng.choices(names, shares)
            for _ in range(self._rng.randint(1, 3)):
                self._turn(name)
                turns += 1
        return self.steps

    def _turn(self, name: str) -> None:
        if name not in self._chats:
            self._chats[name] = TraceTurn(None)
            (persona,) = self._rng.choices(range(3), [6, 3, 2])
            self._step("system", name, persona=persona, words=self._personas[persona])
        chat = self._chats[name]
        path = chat.path()
        forks = [turn for turn in path if turn.parent and len(turn.parent.versions) > 1]
        acts = ["send", "regenerate", "edit last", "edit", "hop"]
        (act,) = self._rng.choices(acts, [50, 10, 12, 13, 15 if forks else 0])
        if act == "hop":
            self._hop(name, path, self._rng.choice(forks))
            path = chat.path()
        if act == "regenerate" and path:
            self._step("regenerate", name)
        elif act.startswith("edit") and path:
            message = len(path) if act == "edit last" else self._rng.randint(1, len(path))
            self._step("edit", name, message=message, words=self._message())
            turn = path[message - 1]
            assert turn.parent is not None
            turn.parent.add()
        else:
            self._step("send", name, words=self._message())
            (path[-1] if path else chat).add()

    def _hop(self, name: str, path: list[TraceTurn], turn: TraceTurn) -> None:
        assert turn.parent is not None
        versions = turn.parent.versions
        other = self._rng.choice([version for version in versions if version is not turn])
        turn.parent.shown = other
        message, version = path.index(turn) + 1, versions.index(other) + 1
        self._step("switch_branch", name, message=message, version=version, of="user")

    def _step(self, op: str, chat: str, **values: object) -> None:
        reply = (
            {} if op in ("system", "switch_branch") else {"reply": min(self._words(250, 0.6), 200)}
        )
        self.steps.append({"op": op, "chat": chat, **values, **reply})

    def _message(self) -> int:
        """Return a message's number of words. In 6 % of cases the message is a long, pasted text."""
        return self._words(1500, 0.4) if self._rng.random() < 0.06 else self._words(80, 0.8)

    def _words(self, tokens: int, spread: float) -> int:
        median = tokens / SCALE / TOKENS_PER_WORD
        return max(2, round(median * math.exp(self._rng.gauss(0, spread))))


VOCABULARY = (
    "the quick brown fox jumps over lazy dog and sleeps on what is weather like list of numbers "
    "please write short story about small boat first second return thank you could say that in "
    "other words course function returns sum both its arguments"
)


def with_texts(name: str, steps: list[Step]) -> Iterator[Step]:
    """Yield the steps. Replace each number of words by a text with this number of words.

    A step has the same text in every run, and a system prompt has the same text in every chat.
    """

    words = VOCABULARY.split()

    def text(key: object, num_words: int) -> str:
        rng = Random(f"{name} {key}")
        return " ".join(words[int(rng.random() * len(words))] for _ in range(num_words))

    for number, step in enumerate(steps):
        spelled = {key: value for key, value in step.items() if key not in ("words", "persona")}
        if "words" in step:
            key = f"persona {step['persona']}" if "persona" in step else number
            spelled["text"] = text(key, step["words"])
        if "reply" in step:
            spelled["reply"] = {"text": text(f"reply {number}", step["reply"])}
            spelled["max_tokens"] = MAX_TOKENS
        yield spelled


# Policies to compare with.


class PlainLru:
    """Evicts the least recently used snapshot, leaf or parked (idle) live cache."""

    def __init__(self, holdings: Holdings) -> None:
        self._holdings = holdings
        self._used = {node: node.last_used for node in holdings.tree.nodes()}

    def next_victim(self) -> Victim | None:
        holdings, used = self._holdings, self._used
        nodes = filter(self._can_go, holdings.tree.nodes())
        node = min(nodes, key=lambda node: used[node], default=None)
        hot = min(holdings.parked.values(), key=lambda hot: hot.last_used, default=None)
        if node is not None and (hot is None or used[node] <= hot.last_used):
            return EvictSnapshot(node) if holdings.needs_snapshot else EvictNode(node)
        return EvictHot(hot) if hot else None

    def update(self, evicted: Evicted) -> None:
        """Do nothing: the tree is read again for each victim."""

    def _can_go(self, node: KvNode) -> bool:
        if self._holdings.needs_snapshot:
            return node.snapshot is not None and not node.lock_count
        return not node.children and not node.lock_count and lender(node) is None


class LruOfPaths(PlainLru):
    """Plain LRU, but a use of a resume point counts as a use of all nodes above it."""

    def __init__(self, holdings: Holdings) -> None:
        super().__init__(holdings)
        for node in reversed(list(holdings.tree.nodes())):
            if node.parent is not None:
                self._used[node.parent] = max(self._used[node.parent], self._used[node])


# Playing a trace under a policy.


class CacheClient(EngineCommands):
    """A client whose engine is only a runner. `send` computes the answer before it returns."""

    def __init__(self, model: LoadedModel, cache: PrefixCache) -> None:
        history = History()
        feeder = Feeder(model, cache, history, CONFIG, lambda: None)
        planner = PromptPlanner(model, cache, feeder, history)
        admission = Admission(model, CONFIG)
        self._runner = Runner(
            model, cache, planner, feeder, admission, NoDrafts(), looks_ahead=CONFIG.looks_ahead
        )
        self._events: deque[Event] = deque()
        self.finished: list[RequestFinished] = []

    @override
    def send(self, command: Command) -> None:
        assert isinstance(command, Submit)
        sequence = self._runner.start(command.request, command.submitted_at)
        assert sequence is not None
        while sequence.logits is None:
            self._runner.read(sequence)
        events: list[Event] = []
        while not (events and isinstance(events[-1], RequestFinished)):
            [(_, result)] = self._runner.decode()
            assert isinstance(result, list), result
            events = result
        self._runner.publish_turn(sequence)
        self.finished.append(events[-1])
        self._events.append(events[-1])

    @override
    def want(self, change: Callable[[Wanted], Wanted]) -> None:
        """Ignore settings: the benchmark sets the budget of the cache itself."""

    def next_event(self) -> Event:
        return self._events.popleft()

    def answer(self, asked: Asked[A]) -> A:
        raise AssertionError("a runner alone answers no question")


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceResult:
    """The result of playing a trace under one policy."""

    tokens_fed: int
    held_bytes: int
    num_points: int
    working_set_bytes: int


def play(model: LoadedModel, steps: list[Step], policy: Policy, budget_bytes: int) -> TraceResult:
    cache = PrefixCache(
        model.layout, budget_bytes=budget_bytes, max_hot=CONFIG.max_hot, policy=policy
    )
    client = CacheClient(model, cache)
    player = ScriptPlayer(client, Path(), check=False)
    for step in steps:
        for _ in player.play(parse_step(json.dumps(step))):
            pass
    cache.check_invariants()
    held = cache.statistics()
    return TraceResult(
        tokens_fed=sum(
            finished.usage.plan.prompt_tokens - finished.usage.plan.restored
            for finished in client.finished
        ),
        held_bytes=held.total_bytes,
        num_points=held.num_snapshots,
        working_set_bytes=working_set_bytes(client.finished, model.layout),
    )


def working_set_bytes(finished: list[RequestFinished], layout: Layout) -> int:
    """Return the bytes of all restored resume points and their K/V. Count shared K/V once."""
    plans = [(event.prompt_ids, event.usage.plan.restored) for event in finished]
    restored = {prompt_ids[:end] for prompt_ids, end in plans if end}
    tokens = ProcessedTokens()
    num_tokens = sum(len(token_ids) - tokens.add(token_ids) for token_ids in restored)
    return len(restored) * layout.snapshot_bytes + num_tokens * layout.kv_bytes_per_token


def main() -> int:
    """Return 0 if our policy beats LRU, else 1.

    The median and the worst ratio of our fed tokens to those of the better LRU must be below limits.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--share", type=float, default=0.5, help="of the working set")
    parser.add_argument("--seeds", type=int, nargs="*", help="of other traces than the kept ones")
    parser.add_argument("--keep", action="store_true", help="write the kept traces anew")
    args = parser.parse_args()
    if args.keep:
        keep_traces()
    model = load_sized(state_tokens=STATE_TOKENS)
    ratios: list[float] = []
    print(
        "trace       held  working set   budget |    fed: no budget     ours      LRU  LRU, paths | ours/LRU"
    )
    for name, steps in traces(args.seeds):
        free = play(model, steps, CoverageRanking, 1 << 62)
        budget = int(free.working_set_bytes * args.share)
        ours, lru, paths = (
            play(model, steps, policy, budget).tokens_fed
            for policy in (CoverageRanking, PlainLru, LruOfPaths)
        )
        ratios.append(ours / min(lru, paths))
        print(
            f"{name:8}{mib(free.held_bytes)}{mib(free.working_set_bytes):>13}{mib(budget):>9} |"
            f"{free.tokens_fed:>18}{ours:>9}{lru:>9}{paths:>12} | {ratios[-1]:.3f}",
            flush=True,
        )
    usual, worst = statistics.median(ratios), max(ratios)
    print(f"ours / the better LRU: median {usual:.3f}, worst {worst:.3f}")
    return 0 if usual <= MEDIAN_LIMIT and worst <= WORST_LIMIT else 1


def mib(nbytes: int) -> str:
    return f"{nbytes / 2**20:6.2f} M"


def keep_traces() -> None:
    TRACES.mkdir(exist_ok=True)
    for seed in SEEDS:
        lines = [json.dumps(step, separators=(",", ":")) for step in TraceWriter(seed).write()]
        (TRACES / f"trace-{seed}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def traces(seeds: list[int] | None) -> Iterator[tuple[str, list[Step]]]:
    for seed in seeds or SEEDS:
        name = f"trace-{seed}"
        if seeds:
            steps = TraceWriter(seed).write()
        else:
            lines = (TRACES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
            steps = [json.loads(line) for line in lines]
        yield name, list(with_texts(name, steps))


if __name__ == "__main__":
    sys.exit(main())
