from __future__ import annotations

import pytest

from app.viewmodels.branch_cost import BranchState, branch_cost
from engine.errors import ContextFullError
from engine.questions import TokensCounted
from engine.reading_pace import ReadingTime

SOON = ReadingTime(1.0, 0.9, 1.1)


@pytest.mark.parametrize(
    ("counted", "state", "text"),
    [
        (TokensCounted(num_tokens=920, num_cached=900), BranchState.MEMORY, "Instant"),
        (
            TokensCounted(num_tokens=920, num_cached=900, num_on_disk=800),
            BranchState.DISK,
            "Instant, from disk",
        ),
        (
            TokensCounted(num_tokens=1112, num_cached=900, num_on_disk=800),
            BranchState.UNREAD,
            "Reads 212 tokens, about 1 s",
        ),
        (
            TokensCounted(
                num_tokens=9000,
                num_cached=9000,
                refusal=ContextFullError("It is too long.").problem,
            ),
            BranchState.UNREAD,
            "Too long for the model",
        ),
    ],
)
def test_cost_tells_the_state_and_what_is_read(
    counted: TokensCounted, state: BranchState, text: str
) -> None:
    cost = branch_cost(counted, SOON)
    assert (cost.state, cost.text) == (state, text)


def test_cost_without_a_measured_rate_has_no_time() -> None:
    counted = TokensCounted(num_tokens=5000, num_cached=0)
    assert branch_cost(counted, None).text == "Reads 5,000 tokens"
