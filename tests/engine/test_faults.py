"""Planted failures of single calls, and wrong cached state.

A failure ends one request with one clear problem, or the request is retried. No other conversation
loses state, and every later answer is exact.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pytest

from engine.cache import kv, lending, prefix_cache
from engine.cache.hot import HotCache
from engine.config import EngineConfig
from engine.errors import BugError, OutOfMemoryError, TemplateError
from engine.models.adapter import ModelAdapter
from engine.models.isolated import IsolatedRenderer
from engine.types import ConversationId, SamplingParams
from tests.fakes.engine_fixtures import TinyModel
from tests.fakes.tables import rest_in_soak
from tests.fakes.tiny_model import Template
from tests.oracle.flight import How
from tests.oracle.harness import Harness

HOW = How(sampling=SamplingParams(temperature=0.0), max_tokens=2)
BROKEN = RuntimeError("it broke")
OUT_OF_MEMORY = RuntimeError("[malloc] Unable to allocate 4294967296 bytes.")


TITLES = (BugError.title, OutOfMemoryError.title, TemplateError.title)


@dataclass(slots=True)
class Tripwire:
    """A wrapper that counts the calls of a function and makes one of them fail."""

    fails_at: int  # number of calls before the failing one; -1 if no call fails
    error: Exception
    calls: int = 0

    def around(self, function: Callable[..., object]) -> Callable[..., object]:
        def tripped(*args: object, **options: object) -> object:
            self.calls += 1
            if self.calls == self.fails_at + 1:
                raise self.error
            return function(*args, **options)

        return tripped


@dataclass(frozen=True, slots=True)
class FaultPlace:
    """An attribute of a module or class whose calls can be made to fail."""

    owner: object
    name: str
    error: Exception = BROKEN

    def trip(self, patch: pytest.MonkeyPatch, fails_at: int) -> Tripwire:
        tripwire = Tripwire(fails_at, self.error)
        patch.setattr(self.owner, self.name, tripwire.around(getattr(self.owner, self.name)))
        return tripwire


PLACES = {
    "allocation": FaultPlace(ModelAdapter, "forward", OUT_OF_MEMORY),
    "forward": FaultPlace(ModelAdapter, "forward"),
    "layer": FaultPlace(importlib.import_module("mlx_lm.models.lfm2").Lfm2DecoderLayer, "__call__"),
    "capture": FaultPlace(prefix_cache, "capture"),
    "evaluation": FaultPlace(kv, "evaluate", OUT_OF_MEMORY),
    "copying out": FaultPlace(kv, "copy_range"),
    "writing back": FaultPlace(kv, "append_slices"),
    "making room": FaultPlace(kv, "reserve"),
    "publishing": FaultPlace(lending, "_attach"),
    "template": FaultPlace(IsolatedRenderer, "segments", TemplateError("No such role.")),
}


def open_engine(folder: Path) -> Harness:
    """Open an engine that keeps one live cache, so that switching chats moves K/V out and in."""
    harness = Harness(EngineConfig(use_openblas=False, cache_budget_bytes=1 << 30, max_hot=1))
    harness.load(folder)
    for chat in ("A", "B"):
        harness.people.set_system(chat, "You are short.")
    return harness


def begin(harness: Harness) -> None:
    for chat in ("A", "B"):
        harness.send(chat, f"{chat} boat", HOW, is_fresh=True)
        harness.settle()


def continue_chats(harness: Harness) -> None:
    """Edit a message of chat A, switch back to the first version and send another message."""
    harness.edit("A", 0, "edited", HOW, is_fresh=True)
    harness.settle()
    harness.people.switch("A", 0, 0)
    harness.send("A", "small dog?", HOW, is_fresh=True)
    harness.settle()


def continue_with_fault(
    tiny_model: TinyModel, patch: pytest.MonkeyPatch, place: FaultPlace, fails_at: int
) -> Harness:
    harness = open_engine(tiny_model("lfm2", Template.KEEPING))
    begin(harness)
    harness.problems = []
    with patch.context() as planted:
        place.trip(planted, fails_at)
        continue_chats(harness)
        harness.await_idle()
    return harness


@pytest.fixture(scope="module")
def num_calls(tiny_model: TinyModel) -> dict[str, int]:
    """Return the number of calls of each place while no call fails."""
    harness = open_engine(tiny_model("lfm2", Template.KEEPING))
    begin(harness)
    harness.problems = []
    with pytest.MonkeyPatch.context() as planted:
        tripwires = {name: place.trip(planted, -1) for name, place in PLACES.items()}
        continue_chats(harness)
        harness.await_idle()
    assert harness.problems == []
    harness.close()
    return {name: tripwire.calls for name, tripwire in tripwires.items()}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "num_failures"),
    rest_in_soak(product(PLACES, [1, 12]), *product(PLACES, [1])),
)
def test_failure_of_a_call_ends_at_most_one_request(
    tiny_model: TinyModel,
    monkeypatch: pytest.MonkeyPatch,
    num_calls: dict[str, int],
    name: str,
    num_failures: int,
) -> None:
    place = PLACES[name]
    assert num_calls[name] > 0

    # An odd distance: the calls of every layer are among those that fail.
    step = num_calls[name] // num_failures | 1
    for fails_at in range(step // 2, num_calls[name], step):
        harness = continue_with_fault(tiny_model, monkeypatch, place, fails_at)
        assert harness.problems is not None
        assert len(harness.problems) <= 1
        for problem in harness.problems:
            assert problem.title in TITLES
            assert problem.cause
            assert problem.advice
        harness.problems = None
        if place.error is OUT_OF_MEMORY:
            # The engine has evicted all cached state to free memory.
            harness.account.clear()
        harness.account.forget("A")
        for chat in ("B", "A", "B"):
            harness.send(chat, f"{fails_at} after", HOW, is_fresh=True)
            harness.settle()
        harness.close()


def wrong_snapshot(harness: Harness, hot: HotCache) -> None:
    """Make the newest snapshot of the chat claim one token more than it has."""
    assert harness.cache is not None
    points = [
        n
        for n in harness.cache.holdings.tree.nodes()
        if n.snapshot and n.users == {hot.conversation_id}
    ]
    newest = max(points, key=lambda node: node.end)
    assert newest.snapshot is not None
    newest.snapshot.num_tokens += 1


def short_kv(harness: Harness, hot: HotCache) -> None:
    """Make the K/V of one layer one token shorter."""
    hot.leaves.kv[0].offset -= 1


def lost_kv(harness: Harness, hot: HotCache) -> None:
    """Remove the K/V buffers of one layer."""
    hot.leaves.kv[0].keys = hot.leaves.kv[0].values = None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "plant"),
    rest_in_soak(
        [
            ("qwen3_5", wrong_snapshot),
            ("gemma3", wrong_snapshot),
            ("qwen3_5", short_kv),
            ("llama", short_kv),
            ("qwen3_5", lost_kv),
            ("llama", lost_kv),
        ],
        ("qwen3_5", wrong_snapshot),
        ("gemma3", wrong_snapshot),
        ("qwen3_5", short_kv),
        ("llama", lost_kv),
    ),
)
def test_wrong_cached_state_is_dropped_and_read_again(
    tiny_model: TinyModel, name: str, plant: Callable[[Harness, HotCache], None]
) -> None:
    harness = open_engine(tiny_model(name, Template.KEEPING))
    begin(harness)
    assert harness.cache is not None
    hot = harness.cache.holdings.parked.get(ConversationId("B"))
    assert hot is not None
    plant(harness, hot)
    # The engine finds the fault at the next use of the state. Suspend the checks until then.
    harness.problems = []
    harness.send("B", "small dog?", HOW, is_fresh=False)
    harness.settle()
    assert harness.problems == []
    harness.num_planted = 1
    harness.check()
    # The engine may have dropped the state of the system prompt, which both conversations share.
    harness.account.clear()
    harness.problems = None
    for chat in ("A", "B", "A"):
        harness.send(chat, "other words", HOW, is_fresh=True)
        harness.settle()
    harness.close()
