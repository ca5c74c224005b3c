from __future__ import annotations

import pytest

from app.viewmodels.branch_cost import BranchState, branch_cost
from app.viewmodels.reading import ToRead
from engine.reading_pace import ReadingTime

SOON, LATER = ReadingTime(0.1, 0.09, 0.11), ReadingTime(2.0, 1.9, 2.1)


@pytest.mark.parametrize(
    ("to_read", "state", "text"),
    [
        (ToRead(20, SOON, 920), BranchState.MEMORY, "Instant"),
        (ToRead(212, SOON, 920), BranchState.MEMORY, "Instant"),
        (ToRead(20, None, 920), BranchState.MEMORY, "Reads 20 tokens"),
        (
            ToRead(20, SOON, 920, num_on_disk=900),
            BranchState.DISK,
            "Restores 900 tokens from disk · reads 20 tokens, about 1 s",
        ),
        (ToRead(212, LATER, 920), BranchState.UNREAD, "Reads 212 tokens, about 2 s"),
        (ToRead(5000, None, 5000), BranchState.UNREAD, "Reads all 5,000 tokens"),
    ],
)
def test_cost_tells_the_state_and_what_is_read(
    to_read: ToRead, state: BranchState, text: str
) -> None:
    cost = branch_cost(to_read, is_too_long=False)
    assert (cost.state, cost.text) == (state, text)


def test_branch_that_the_model_would_refuse_is_too_long() -> None:
    assert branch_cost(ToRead(0), is_too_long=True).text == "Too long for the model"


@pytest.mark.parametrize(
    ("to_read", "short"),
    [
        (ToRead(14_310, ReadingTime(48.0, 45.0, 52.0), 14_310), "Reads 14,310 tokens"),
        (ToRead(20, ReadingTime(0.1, 0.1, 0.1), 840, num_on_disk=820), "Reads 20 tokens"),
        (ToRead(0, None, 840, num_on_disk=840), "Reads nothing"),
        (ToRead(0), "Instant"),
    ],
)
def test_short_cost_has_no_time_and_no_tokens_on_disk(to_read: ToRead, short: str) -> None:
    cost = branch_cost(to_read, is_too_long=False)
    assert cost.short == short
