"""A long run under a cache budget, in which memory must not grow.

`python -m tests.soak turns` plays 2,000 turns in place of these 20.
"""

from __future__ import annotations

import pytest

from tests.fakes.engine_fixtures import TinyModel
from tests.fakes.tiny_model import Template
from tests.oracle.machine import subjects_of
from tests.oracle.turns import run_turns


@pytest.mark.slow
def test_memory_stays_flat_under_a_budget(tiny_model: TinyModel) -> None:
    subject = subjects_of(["lfm2"], tiny_model)[f"lfm2 {Template.THINKING}"]
    report = run_turns(
        subject.model, turns=20, budget=2 * subject.conversation_bytes, seed=1, progress=print
    )

    assert report.checked == 5
    assert report.evictions > 0
    assert report.last.ledger <= report.budget
    # Some bytes belong to no array: MLX may reuse a freed buffer for a somewhat smaller array.
    assert report.unaccounted < 0.25 * report.budget
    # The growth over the whole run must be less than a tenth of the memory held at its end.
    assert abs(report.device_slope) * report.turns < 0.1 * report.last.device
