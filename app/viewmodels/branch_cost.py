"""The cost of a branch: what the model would read before the next message. No Qt, no I/O."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from app.viewmodels.cost import cost_line, short_cost
from app.viewmodels.reading import ToRead
from app.words import branches as words

# A branch of which the model would read fewer tokens is not marked as one to be read. Most
# templates leave a few tokens after an answer to be read with the next message.
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
    short: str  # the same without disk and time, for a place with little room


def branch_cost(to_read: ToRead, *, is_too_long: bool) -> BranchCost:
    """Return the cost of a branch. is_too_long: True if the model would refuse it."""
    if is_too_long:
        return BranchCost(BranchState.UNREAD, words.TOO_LONG, words.TOO_LONG)
    text, short = cost_line(to_read), short_cost(to_read)
    if to_read.num_tokens >= FEW_TOKENS and not to_read.is_instant:
        return BranchCost(BranchState.UNREAD, text, short)
    state = BranchState.DISK if to_read.num_on_disk else BranchState.MEMORY
    return BranchCost(state, text, short)
