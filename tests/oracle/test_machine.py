"""Whatever people do and in whatever order, every answer is the bare model's and nothing is redone.

`python -m tests.soak machine` runs the same for longer.
"""

from __future__ import annotations

import pytest

from tests.fakes.engine_fixtures import TinyModel
from tests.oracle.machine import run_machine, subjects_of


@pytest.mark.slow
@pytest.mark.parametrize("name", ["qwen3_5", "lfm2", "falcon_h1", "gemma3", "llama"])
def test_any_order_of_actions_is_exact_and_redoes_nothing(tiny_model: TinyModel, name: str) -> None:
    subjects = subjects_of([name], tiny_model)
    tally = run_machine(subjects, examples=6, steps=30, seeded=True)

    assert tally.examples >= 6
    assert tally.checked > 0
    assert tally.strict > 0
