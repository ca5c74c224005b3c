from __future__ import annotations

import pytest

from app.viewmodels.branch_cost import BranchState, branch_cost
from engine.reading_pace import ReadingTime
from engine.usage import PromptPlan

SOON = ReadingTime(1.0, 0.9, 1.1)


def _plan(restored: int, replayed: int, read: int, *, disk: int = 0) -> PromptPlan:
    return PromptPlan(
        prompt_tokens=restored + replayed + read,
        restored=restored,
        replayed=replayed,
        read=read,
        restored_disk=disk,
    )


@pytest.mark.parametrize(
    ("plan", "state", "text"),
    [
        (_plan(900, 0, 20), BranchState.MEMORY, "Instant"),
        (_plan(900, 60, 20), BranchState.MEMORY, "Instant"),
        (_plan(900, 0, 20, disk=800), BranchState.DISK, "Instant, from disk"),
        (_plan(900, 0, 212), BranchState.UNREAD, "Reads 212 tokens, about 1 s"),
        (
            _plan(0, 1200, 40),
            BranchState.UNREAD,
            "Reads 1,240 tokens, 1,200 of them again, about 1 s",
        ),
    ],
)
def test_cost_tells_the_state_and_what_is_read(
    plan: PromptPlan, state: BranchState, text: str
) -> None:
    cost = branch_cost(plan, SOON)
    assert (cost.state, cost.text) == (state, text)


def test_cost_without_a_measured_rate_has_no_time() -> None:
    assert branch_cost(_plan(0, 0, 5000), None).text == "Reads 5,000 tokens"
