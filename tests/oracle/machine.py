"""A Hypothesis state machine: random actions of users, in any order, on a whole engine.

Each rule is an action: send, edit, regenerate, continue, stop, switch, read ahead, evict, load a
model. After most actions the engine does only some pieces of work, so that the next action
comes in the middle of a request. The harness (harness.py) plays the actions and checks each
event; the machine's invariant checks the cache after every step. Budgets, cells and attention
blocks are drawn small, so that short texts reach their limits. Hypothesis shortens a failing
sequence of actions before it reports it. `python -m tests.soak machine` runs more examples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from typing_extensions import override

from app.cli.client import load_model
from engine.config import EngineConfig
from engine.models import attention
from engine.questions import EvictWhat
from engine.types import ForcedReply, SamplingParams
from tests.fakes.inline_engine import InlineClient
from tests.fakes.tiny_model import Template
from tests.oracle.flight import How
from tests.oracle.harness import Harness

CHATS = ("A", "B", "C")
SYSTEMS = ("", "You are short.", "You are long-winded.", "Speak like a <|im_end|> sailor.")
# Each new message begins with a different one of these characters, so that no two messages share
# their first tokens by chance. The account of fed tokens is strict only for such messages.
_FIRST = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
_ENDINGS = (
    "",
    " small boat?",
    " <|im_end|> typed",
    " \N{SLIGHTLY SMILING FACE} \u00e9t\u00e9",
    " <think>no</think>",
    "\n\ntwo\n",
    " over the lazy dog and on" * 3,
)

chats = st.sampled_from(CHATS)
numbers = st.integers(0, 5)
endings = st.sampled_from(_ENDINGS)
samplings = st.builds(
    SamplingParams,
    temperature=st.sampled_from([0.0, 0.8]),
    top_p=st.just(1.0),
    repetition_penalty=st.sampled_from([1.0, 1.3]),
    seed=st.integers(0, 3),
)
replies = st.builds(
    ForcedReply,
    text=st.sampled_from(["", "Yes.", " a \N{SLIGHTLY SMILING FACE} boat", "Of course.\n\n1. dog"]),
    reasoning=st.sampled_from(["", "hm, a list"]),
)
hows = st.builds(
    How,
    sampling=samplings,
    max_tokens=st.integers(1, 12),
    thinking=st.sampled_from([None, None, None, True, False]),
    forced=st.one_of(st.none(), replies),
    stop_after=st.one_of(st.none(), st.none(), st.integers(1, 3)),
    max_drafts=st.sampled_from([0, None, 2, 7]),
)
# Number of pieces of work before the next action; None to work until all is answered.
pieces = st.one_of(st.none(), st.none(), st.integers(0, 9))


class Change(Enum):
    """A change of a conversation, a setting or the cache, made without a request."""

    SYSTEM = auto()
    FORGET = auto()
    PIN = auto()
    SHOW = auto()
    IDLE_WORK = auto()
    EVICT = auto()
    LOAD = auto()


class Load(Enum):
    """A choice of the model to load."""

    SAME = auto()
    OTHER = auto()
    MISSING = auto()
    CHANGED_MIND = auto()  # load another model, then the first one again without waiting
    NONE = auto()


@dataclass(slots=True)
class Tally:
    """The number of examples, steps and checks so far."""

    examples: int = 0
    steps: int = 0
    checked: int = 0  # number of replies whose logits were compared with the bare model's
    strict: int = 0  # number of prompts whose redo (see account.py) had to be 0


@dataclass(frozen=True, slots=True)
class EngineSetup:
    """The settings of an engine, small enough for short texts to reach their limits."""

    budget: float  # in units of Subject.conversation_bytes
    max_hot: int
    cell_len: int
    max_scores: int  # maximum number of attention scores in one block
    max_running: int
    looks_ahead: bool


setups = st.builds(
    EngineSetup,
    budget=st.sampled_from([0, 0.5, 2, 1000, 1000]),
    max_hot=st.integers(1, 3),
    cell_len=st.sampled_from([16, 512]),
    max_scores=st.sampled_from([500, 1 << 19]),
    max_running=st.sampled_from([1, 2, 8]),
    looks_ahead=st.booleans(),
)


@dataclass(frozen=True, slots=True)
class Subject:
    """A model to test, another model to switch to, and the size of a short conversation."""

    model: Path
    other: Path
    conversation_bytes: int  # bytes of the K/V of 512 tokens plus eight snapshots


class Machine(RuleBasedStateMachine):
    """Random actions of users on one engine, as rules. An invariant checks the cache."""

    subjects: ClassVar[Mapping[str, Subject]]
    tally: ClassVar[Tally]

    def __init__(self) -> None:
        super().__init__()
        self._count = 0
        self._texts: list[str] = []
        self._drafts: dict[str, str] = {}
        self._harness: Harness | None = None
        self._subject: Subject | None = None
        self._patch = pytest.MonkeyPatch()

    @property
    def harness(self) -> Harness:
        assert self._harness is not None
        return self._harness

    @initialize(data=st.data(), setup=setups, systems=st.permutations(SYSTEMS))
    def open(self, data: st.DataObject, setup: EngineSetup, systems: list[str]) -> None:
        subject = self.subjects[data.draw(st.sampled_from(sorted(self.subjects)))]
        self._patch.setattr(attention, "_MAX_SCORES_CPU", setup.max_scores)
        config = EngineConfig(
            use_openblas=False,
            cache_budget_bytes=int(setup.budget * subject.conversation_bytes),
            max_hot=setup.max_hot,
            cell_len=setup.cell_len,
            stride_len=setup.cell_len * 4,
            max_running=setup.max_running,
            looks_ahead=setup.looks_ahead,
            saves_battery=False,
        )
        self._subject, self._harness = subject, Harness(config)
        for chat, system in zip(CHATS, [systems[0], *systems[:2]], strict=True):
            self.harness.people.set_system(chat, system)
        self.harness.load(subject.model)
        self.tally.examples += 1

    # Requests

    @rule(chat=chats, ending=endings, how=hows, run=pieces)
    def send(self, chat: str, ending: str, how: How, run: int | None) -> None:
        if chat not in self.harness.busy:
            text = self._drafts.pop(chat, "") or self._fresh("")
            self.harness.send(chat, f"{text}{ending.rstrip()}", how, is_fresh=self._is_fresh)
        self._run(run)

    @rule(chat=chats, nth=numbers, ending=endings, how=hows, run=pieces)
    def edit(self, chat: str, nth: int, ending: str, how: How, run: int | None) -> None:
        if chat not in self.harness.busy:
            self.harness.edit(chat, nth, self._fresh(ending), how, is_fresh=self._is_fresh)
        self._run(run)

    @rule(chat=chats, nth=numbers, old=numbers, ending=endings, how=hows, run=pieces)
    def edit_alike(
        self, chat: str, nth: int, old: int, ending: str, how: How, run: int | None
    ) -> None:
        """Edit a message to a text that begins like an earlier message."""
        if chat not in self.harness.busy and self._texts:
            text = self._texts[old % len(self._texts)] + ending.rstrip()
            self.harness.edit(chat, nth, text, how, is_fresh=False)
        self._run(run)

    @rule(chat=chats, nth=numbers, how=hows, run=pieces)
    def regenerate(self, chat: str, nth: int, how: How, run: int | None) -> None:
        if chat not in self.harness.busy:
            self.harness.regenerate(chat, nth, how)
        self._run(run)

    @rule(chat=chats, how=hows, run=pieces)
    def resume(self, chat: str, how: How, run: int | None) -> None:
        if chat not in self.harness.busy:
            self.harness.resume(chat, how)
        self._run(run)

    @rule(chat=chats, how=hows)
    def ask_aside(self, chat: str, how: How) -> None:
        self.harness.ask_aside(chat, how)

    @rule(run=pieces)
    def run_pieces(self, run: int | None) -> None:
        self._run(run)

    @rule(which=numbers)
    def cancel(self, which: int) -> None:
        self.harness.cancel(which)

    # Other actions

    @rule(chat=chats, nth=numbers, version=numbers)
    def switch(self, chat: str, nth: int, version: int) -> None:
        self.harness.people.switch(chat, nth, version)

    @rule(chat=chats, thinking=st.sampled_from([None, None, False]), run=pieces)
    def read_ahead(self, chat: str, thinking: bool | None, run: int | None) -> None:
        self.harness.read_ahead(chat, How(thinking=thinking))
        self._run(run)

    @rule(chat=chats, ending=endings, run=pieces)
    def type_on(self, chat: str, ending: str, run: int | None) -> None:
        self._drafts[chat] = self._drafts.get(chat) or self._fresh("")
        self._drafts[chat] += ending.rstrip()
        self.harness.read_ahead(chat, How(), draft=self._drafts[chat])
        self._run(run)

    @rule()
    def await_idle(self) -> None:
        self.harness.await_idle()

    @rule(chat=chats, what=st.sampled_from(list(Change)), data=st.data())
    def change(self, chat: str, what: Change, data: st.DataObject) -> None:
        harness = self.harness
        match what:
            case Change.SYSTEM:
                harness.people.set_system(chat, data.draw(st.sampled_from(SYSTEMS)))
            case Change.FORGET:
                harness.forget(chat)
            case Change.PIN:
                harness.pin(chat, pinned=data.draw(st.booleans()))
            case Change.SHOW:
                harness.show(data.draw(st.sampled_from([chat, None])))
            case Change.IDLE_WORK:
                harness.set_idle_work(data.draw(st.booleans()))
            case Change.EVICT:
                harness.evict(data.draw(st.sampled_from([*EvictWhat, EvictWhat.HOT])))
            case Change.LOAD:
                self._load(data.draw(st.sampled_from(list(Load))))

    @invariant()
    def holds(self) -> None:
        if self._harness is not None:
            self.tally.steps += 1
            self._harness.check()

    @override
    def teardown(self) -> None:
        self._patch.undo()
        if self._harness is not None:
            harness, self._harness = self._harness, None
            harness.close()
            self.tally.checked += harness.num_checked
            self.tally.strict += harness.account.num_strict

    def _load(self, which: Load) -> None:
        subject = self._subject
        assert subject is not None
        match which:
            case Load.SAME:
                self.harness.load(subject.model)
            case Load.OTHER:
                self.harness.load(subject.other)
            case Load.MISSING:
                self.harness.load(subject.model / "missing")
            case Load.CHANGED_MIND:
                self.harness.load(subject.other, subject.model)
            case Load.NONE:
                self.harness.load()

    def _run(self, count: int | None) -> None:
        if count is None:
            self.harness.settle()
            return
        for _ in range(count):
            self.harness.step()

    @property
    def _is_fresh(self) -> bool:
        return self._count <= len(_FIRST)

    def _fresh(self, ending: str) -> str:
        first = _FIRST[self._count % len(_FIRST)]
        self._count += 1
        self._texts.append(f"{first}{ending.rstrip()}")
        return self._texts[-1]


def subjects_of(
    names: Iterable[str], get_model: Callable[[str, Template], Path]
) -> dict[str, Subject]:
    """Return a Subject for each pair of a tiny model and a template. The key is a title."""
    subjects: dict[str, Subject] = {}
    for name in names:
        other = get_model("lfm2" if name == "llama" else "llama", Template.KEEPING)
        for template in Template:
            folder = get_model(name, template)
            client = InlineClient(EngineConfig(use_openblas=False))
            facts = load_model(client, folder, lambda _: None)
            size = 512 * facts.kv_bytes_per_token + 8 * facts.snapshot_bytes
            subjects[f"{name} {template}"] = Subject(folder, other, size)
    return subjects


def run_machine(
    subjects: Mapping[str, Subject], *, examples: int, steps: int, seeded: bool
) -> Tally:
    """Run the machine and return its counts, or raise the first failure and print its steps.

    Args:
        subjects: The models to choose from. Key: title.
        examples: The number of sequences of actions, each with an engine of its own.
        steps: The largest number of actions in a sequence.
        seeded: True to run the same sequences each time.
    """

    class Bound(Machine):
        tally = Tally()

    Bound.subjects = subjects
    run_state_machine_as_test(
        Bound,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            derandomize=seeded,
            database=None,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        ),
    )
    return Bound.tally
