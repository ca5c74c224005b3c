"""How stored tokens were fed: by which forward passes, over which ranges. Pure.

Rounding depends on how a prompt is cut: a token fed in a pass of 512 tokens and the same token fed
alone may differ in the last bits of their K/V. So a stored token is known by its id and by the pass
that computed it, and whoever repeats the passes of a path on empty caches gets the same bits.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Feed:
    """Tokens [start, end) fed in one pass, or one by one (a reply while it was written).

    In a sequence of feeds a pass is kept up to where the next feed starts: its end may have been
    cut off since. A pass over one token counts as one_by_one.
    """

    start: int
    end: int
    one_by_one: bool

    def pass_of(self, position: int) -> tuple[int, int]:
        """The range of the pass that computed a token."""
        return (position, position + 1) if self.one_by_one else (self.start, self.end)


def add_pass(feeds: list[Feed], start: int, end: int) -> None:
    """Say that one more forward pass computed [start, end)."""
    add_feeds(feeds, [Feed(start, end, one_by_one=end == start + 1)])


def add_feeds(feeds: list[Feed], more: Iterable[Feed]) -> None:
    """Append more feeds; the two halves of a divided one become one again."""
    for feed in more:
        last = feeds[-1] if feeds else None
        if last is not None and last.one_by_one and feed.one_by_one and last.end == feed.start:
            feeds[-1] = Feed(last.start, feed.end, one_by_one=True)
        elif feed != last:
            feeds.append(feed)


def kept(feeds: Sequence[Feed], start: int, end: int) -> Iterator[tuple[Feed, int]]:
    """The feeds that computed tokens [start, end), each with the end of what is kept of it."""
    first = max(0, bisect_right(feeds, start, key=_start_of) - 1)
    for index in range(first, len(feeds)):
        feed = feeds[index]
        if feed.start >= end:
            return
        next_start = feeds[index + 1].start if index + 1 < len(feeds) else end
        yield feed, min(next_start, end)


def clip(feeds: Sequence[Feed], start: int, end: int) -> Iterator[Feed]:
    """The feeds that computed tokens [start, end). A pass stays whole: its range names it."""
    for feed, kept_end in kept(feeds, start, end):
        if max(feed.start, start) < kept_end:
            is_run = feed.one_by_one
            yield Feed(max(feed.start, start), kept_end, one_by_one=True) if is_run else feed


def common_feeding_end(a: Sequence[Feed], b: Sequence[Feed], start: int, end: int) -> int:
    """How far from start on, at most to end, the same passes computed the tokens in a and in b."""
    position = start
    for ours, theirs in _side_by_side(a, b, start, end):
        stop = min(ours[1], theirs[1])
        if stop <= position:
            continue
        if ours[0].pass_of(position) != theirs[0].pass_of(position):
            break
        position = stop
    return position


def _side_by_side(
    a: Sequence[Feed], b: Sequence[Feed], start: int, end: int
) -> Iterator[tuple[tuple[Feed, int], tuple[Feed, int]]]:
    """The feeds of a and b that overlap, in order."""
    ours, theirs = kept(a, start, end), kept(b, start, end)
    left, right = next(ours, None), next(theirs, None)
    while left is not None and right is not None:
        yield left, right
        if left[1] <= right[1]:
            left = next(ours, None)
        else:
            right = next(theirs, None)


def _start_of(feed: Feed) -> int:
    return feed.start
