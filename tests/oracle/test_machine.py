"""Random user actions in any order: answers equal the bare model's, and no token is fed twice.

`python -m tests.soak machine` runs more and longer sequences.
"""

from __future__ import annotations

from itertools import product

import pytest

from engine.config import EngineConfig
from engine.questions import EvictWhat
from tests.fakes.engine_fixtures import TinyModel
from tests.fakes.tables import rest_in_soak
from tests.fakes.tiny_model import Template
from tests.oracle.flight import How
from tests.oracle.harness import Harness
from tests.oracle.machine import run_machine, subjects_of


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    rest_in_soak(["qwen3_5", "lfm2", "falcon_h1", "gemma3", "llama"], "qwen3_5", "gemma3"),
)
def test_random_actions_give_exact_answers_and_feed_no_token_twice(
    tiny_model: TinyModel, name: str
) -> None:
    subjects = subjects_of([name], tiny_model)
    tally = run_machine(subjects, examples=2, steps=30, seeded=True)

    assert tally.examples >= 2
    assert tally.checked > 0
    assert tally.strict > 0


@pytest.mark.parametrize(
    ("template", "what"),
    rest_in_soak(
        product(Template, [EvictWhat.ALL, EvictWhat.SNAPSHOTS]),
        (Template.THINKING, EvictWhat.ALL),
        (Template.KEEPING, EvictWhat.SNAPSHOTS),
    ),
)
def test_turn_after_evicted_read_ahead_passes_all_checks(
    tiny_model: TinyModel, template: Template, what: EvictWhat
) -> None:
    config = EngineConfig(use_openblas=False, cache_budget_bytes=1 << 30, saves_battery=False)
    harness = Harness(config)
    harness.load(tiny_model("lfm2", template))
    harness.send("A", "one", How(), is_fresh=True)
    harness.settle()
    harness.await_idle()
    harness.evict(what)
    harness.await_idle()

    harness.send("A", "two", How(), is_fresh=True)
    harness.settle()
    harness.close()
