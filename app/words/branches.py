"""Texts of the branch map, and of the window that compares two branches."""

from __future__ import annotations

from typing import Final

MAP: Final = "Branch map"  # name of the map for screen readers
NO_MESSAGES: Final = "This chat has no messages yet."
SHOW: Final = "Show in Chat"
MARK: Final = "Select to Compare"
UNMARK: Final = "Deselect"
COMPARE: Final = "Compare"
COMPARE_SHOWN: Final = "Compare with Current Branch"
DELETE: Final = "Delete Branch"
LARGER: Final = "Zoom In"
SMALLER: Final = "Zoom Out"

# Reasons why a button is disabled.
SAME_BRANCH: Final = "Choose a message of another branch, or select two branches"
IN_ALL: Final = "Every branch contains this message"
ANSWER_RUNNING: Final = "Wait until the answer in this chat has ended"

# States of a message, for screen readers and tooltips.
ON_SHOW: Final = "on show"
HERE: Final = "you are here"
FIRST_MARK: Final = "A"
SECOND_MARK: Final = "B"

TOO_LONG: Final = "Too long for the model"  # in place of the cost of a branch

BRANCH_ON_SHOW: Final = "On show"  # heading of the branch in the chat
NO_MESSAGE: Final = "No message"  # beside a message that only the other branch has


def keys(*, above: str, below: str) -> str:
    """Return the line below the map. above, below: the keys that move to the next forks."""
    return f"Arrows move · {above} and {below} to forks · Return shows in chat · Space selects"


def title(chat: str) -> str:
    return f"Branches of “{chat}”"


def compare_title(chat: str) -> str:
    return f"Compare Branches of “{chat}”"


def summary(*, messages: int, branches: int) -> str:
    count = "1 message" if messages == 1 else f"{messages:,} messages"
    return f"{count} · 1 branch" if branches == 1 else f"{count} · {branches:,} branches"


def delete_branch(count: int) -> str:
    """Return the text of the button that deletes a branch. count: messages that are deleted."""
    return "Delete Branch · 1 message" if count == 1 else f"Delete Branch · {count:,} messages"


def message_spoken(*, speaker: str, number: int, text: str) -> str:
    """Return the name of a message of the map for screen readers."""
    return f"{speaker}, message {number}: {text}" if text else f"{speaker}, message {number}"


def branch_name(name: str, *, number: int) -> str:
    """Return the heading of a branch. number: messages that only this branch has."""
    return f"{name} · 1 message" if number == 1 else f"{name} · {number:,} messages"


def compared(*, shared: int, places: int) -> str:
    """Return the line above two branches. places: texts that differ."""
    if shared == 0:
        same = "The branches part at the first message"
    else:
        same = f"The branches share {'1 message' if shared == 1 else f'{shared:,} messages'}"
    return f"{same} · {'1 difference' if places == 1 else f'{places:,} differences'}"
