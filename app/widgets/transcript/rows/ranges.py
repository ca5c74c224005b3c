"""Ranges of characters in a text, such as a selection or a match of the find bar. No Qt, no I/O."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Range:
    """The characters [start, end) of a text."""

    start: int
    end: int


def within(part: Range, start: int, length: int) -> Range | None:
    """Return the overlap of the range `part` and the range [start, start + length).

    Positions in the result are relative to `start`. Return None if there is no overlap.
    """
    first, last = max(0, part.start - start), min(length, part.end - start)
    return Range(first, last) if first < last else None


def all_within(parts: Sequence[Range], start: int, length: int) -> list[Range]:
    """Call `within` for each range in `parts`, and return the results that are not None.

    The ranges must be sorted and must not overlap.
    """
    first = bisect_right(parts, start, key=lambda part: part.end)
    last = bisect_left(parts, start + length, key=lambda part: part.start)
    return [inner for part in parts[first:last] if (inner := within(part, start, length))]


def overlap(one: Range, other: Range) -> bool:
    """Return True if two ranges have at least one character in common."""
    return one.start < other.end and other.start < one.end
