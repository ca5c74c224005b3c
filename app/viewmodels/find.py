"""Looking for text in messages. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Occurrence:
    """The nth time (from 0) that a message holds what is looked for."""

    message: int
    nth: int


@dataclass(frozen=True, slots=True)
class Found:
    """Which occurrence is shown, from 1, and how many there are. Both are 0 where there is none."""

    number: int = 0
    total: int = 0


def find_pattern(text: str) -> re.Pattern[str] | None:
    """What matches text in any case, with any white space between its words; None for no words."""
    words = [re.escape(word) for word in text.split()]
    return re.compile(r"\s+".join(words), re.IGNORECASE) if words else None


def occurrences(pattern: re.Pattern[str], texts: Iterable[str]) -> list[Occurrence]:
    """All of them, in order."""
    return [
        Occurrence(message, nth)
        for message, text in enumerate(texts)
        for nth, _ in enumerate(pattern.finditer(text))
    ]


def neighbour(
    found: Sequence[Occurrence], current: Occurrence | None, *, step: int, near: int
) -> int:
    """The index of the one to show: step places from the current one, around the end.

    From one that is gone, or without one, the first in message near or after it.
    """
    if current in found and step:
        return (found.index(current) + step) % len(found)
    return next((at for at, one in enumerate(found) if one.message >= near), 0)
