"""Measurements of reading from finished requests."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.viewmodels.reading import note_usage
from engine.reading_pace import ReadingPace
from engine.usage import PromptPlan
from tests.fakes.conversations import USAGE


@pytest.mark.parametrize(
    ("num_read", "prefill_ms", "is_measured"),
    [
        (40, 30.0, False),  # a pass of 40 tokens is nearly as short as one of a token
        (40, 7_800.0, True),  # on a slow machine
        (400, 100.0, True),
    ],
)
def test_request_is_measured_if_it_was_long_or_took_long(
    num_read: int, prefill_ms: float, *, is_measured: bool
) -> None:
    plan = PromptPlan(prompt_tokens=num_read, restored=0, replayed=0, read=num_read)
    pace = ReadingPace()
    note_usage(pace, replace(USAGE, plan=plan, prefill_ms=prefill_ms), now=0.0)
    assert bool(pace.measured) is is_measured
