"""Whatever people do and in whatever order, every answer is the bare model's and nothing is redone.

`python -m tests.soak machine` runs the same for longer.
"""

from __future__ import annotations

import pytest

from engine.config import EngineConfig
from engine.events import EvictWhat
from tests.fakes.engine_fixtures import TinyModel
from tests.fakes.tiny_model import Template
from tests.oracle.flight import How
from tests.oracle.harness import Harness
from tests.oracle.machine import run_machine, subjects_of


@pytest.mark.slow
@pytest.mark.parametrize("name", ["qwen3_5", "lfm2", "falcon_h1", "gemma3", "llama"])
def test_any_order_of_actions_is_exact_and_redoes_nothing(tiny_model: TinyModel, name: str) -> None:
    subjects = subjects_of([name], tiny_model)
    tally = run_machine(subjects, examples=6, steps=30, seeded=True)

    assert tally.examples >= 6
    assert tally.checked > 0
    assert tally.strict > 0


@pytest.mark.parametrize("what", [EvictWhat.ALL, EvictWhat.SNAPSHOTS])
@pytest.mark.parametrize("template", Template)
def test_evicted_read_ahead_is_not_expected_again(
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
