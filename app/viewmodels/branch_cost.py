"""The cost of the next message in a branch: what the model would read before it answers. No Qt, no I/O."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from app.viewmodels.reading import reading_time
from app.words import branches as words
from engine.reading_pace import ReadingTime
from engine.usage import PromptPlan

# A message that makes the model read fewer tokens counts as instant: the tokens of the message itself,
# and the last ones before it, are read after every message.
FEW_TOKENS = 100


class BranchState(StrEnum):
    """The place of a branch's state. UNREAD: a part of the branch must be read."""

    MEMORY = "memory"
    DISK = "disk"
    UNREAD = "unread"


@dataclass(frozen=True, slots=True)
class BranchCost:
    """The cost of a branch, and its text on screen."""

    state: BranchState
    text: str


def branch_cost(plan: PromptPlan, expected: ReadingTime | None) -> BranchCost:
    """Return the cost of a request. expected: the time of its reading, None if it is not known."""
    num_fed = plan.replayed + plan.read
    if num_fed < FEW_TOKENS:
        if plan.restored_disk:
            return BranchCost(BranchState.DISK, words.INSTANT_DISK)
        return BranchCost(BranchState.MEMORY, words.INSTANT)
    time = "" if expected is None else reading_time(expected)
    text = (
        words.replays(num_fed, plan.replayed, time) if plan.replayed else words.reads(num_fed, time)
    )
    return BranchCost(BranchState.UNREAD, text)
