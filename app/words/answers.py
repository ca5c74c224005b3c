"""Texts of the pane that shows several answers side by side."""

from __future__ import annotations

from typing import Final

from app.words import units

SHOW: Final = "Show Answers Side by Side"
SHOW_SHORT: Final = "Show Side by Side"
USE: Final = "Use This Answer"
MARK: Final = "Mark Differences"
MARK_TIP: Final = "Underlines the words that differ from the selected answer, when it is finished"
MARK_NONE: Final = "Two answers must be finished to compare them"
CLOSE: Final = "Close"
THINKING_ON: Final = "Thinking: on"
THINKING_OFF: Final = "Thinking: off"
THINKING_AUTO: Final = "Thinking: auto"


def name(number: int) -> str:
    """Return the name of an answer. number: of the version, as below the answer."""
    return f"Answer {number:,}"


def marked(number: int) -> str:
    """Return the text of the pressed button. number: of the answer without marks."""
    return f"Differences from {name(number)}"


def option(label: str, value: str) -> str:
    return f"{label} {value}"


def used(number: int) -> str:
    return f"{name(number)} is in use"


def still_written(count: int) -> str:
    if count == 1:
        return "1 answer to this message is still being written."
    return f"{count:,} answers to this message are still being written."


def continues(number: int) -> str:
    """Return the note in the tooltip of the Send button."""
    return f"Continues from {name(number)}"


def ended(number: int, num_tokens: int | None) -> str:
    """Return the announcement of the end of an answer for screen readers."""
    end = f"{name(number)} finished"
    return end if num_tokens is None else f"{end}, {units.tokens(num_tokens)}"


def stopped(number: int) -> str:
    return f"{name(number)} stopped"


def failed(number: int, problem: str) -> str:
    return f"{name(number)}: {problem}"
