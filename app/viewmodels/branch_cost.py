"""The cost of a branch: what the model would read before it reads the next message. No Qt, no I/O."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from app.viewmodels.reading import reading_time
from app.words import branches as words
from engine.questions import TokensCounted
from engine.reading_pace import ReadingTime

# A branch of which the model would read fewer tokens counts as instant. Most templates leave a few
# tokens after an answer to be read with the next message.
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


def branch_cost(counted: TokensCounted, expected: ReadingTime | None) -> BranchCost:
    """Return the cost of a branch. expected: the time of its reading, None if it is not known."""
    num_read = counted.num_tokens - counted.num_cached
    if counted.refusal is not None:
        return BranchCost(BranchState.UNREAD, words.TOO_LONG)
    if num_read >= FEW_TOKENS:
        time = "" if expected is None else reading_time(expected)
        return BranchCost(BranchState.UNREAD, words.reads(num_read, time))
    if counted.num_on_disk:
        return BranchCost(BranchState.DISK, words.INSTANT_DISK)
    return BranchCost(BranchState.MEMORY, words.INSTANT)
