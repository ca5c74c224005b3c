"""Records of the forward passes that computed stored tokens. Pure Python, without mlx.

Rounding depends on how a prompt is divided into passes: a token fed in a pass of 512 tokens and the
same token fed alone may differ in the last bits of their K/V. Therefore the prefix cache identifies
a stored token by its id and by the pass that computed it. Repeating the passes of a path on empty
caches gives the same bits. checking/replay.py checks stored state in this way.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Feed:
    """Tokens [start, end) computed in one forward pass, or in one pass per token (one_by_one).

    A reply is fed one token per pass while it is generated. A pass over a single token always
    counts as one_by_one. If tokens of the pass are removed later, `end` does not change: it stays
    the end of the original pass. The stored tokens of a feed end where the next feed in the list
    starts.
    """

    start: int
    end: int
    one_by_one: bool

    def pass_of(self, position: int) -> tuple[int, int]:
        """Return the token range of the pass that computed the token at a position."""
        return (position, position + 1) if self.one_by_one else (self.start, self.end)


def add_pass(feeds: list[Feed], start: int, end: int) -> None:
    """Record one more forward pass, which computed the tokens [start, end)."""
    add_feeds(feeds, [Feed(start, end, one_by_one=end == start + 1)])


def add_feeds(feeds: list[Feed], more: Iterable[Feed]) -> None:
    """Append feeds. Merge adjacent one-by-one feeds, and skip a feed equal to the last one."""
    for feed in more:
        last = feeds[-1] if feeds else None
        if last is not None and last.one_by_one and feed.one_by_one and last.end == feed.start:
            feeds[-1] = Feed(last.start, feed.end, one_by_one=True)
        elif feed != last:
            feeds.append(feed)


def kept(feeds: Sequence[Feed], start: int, end: int) -> Iterator[tuple[Feed, int]]:
    """Yield (feed, stored_end) for each feed that computed tokens in [start, end).

    stored_end is the position after the feed's last stored token, at most `end`.
    """
    first = max(0, bisect_right(feeds, start, key=_start_of) - 1)
    for index in range(first, len(feeds)):
        feed = feeds[index]
        if feed.start >= end:
            return
        next_start = feeds[index + 1].start if index + 1 < len(feeds) else end
        yield feed, min(next_start, end)


def clip(feeds: Sequence[Feed], start: int, end: int) -> Iterator[Feed]:
    """Yield the feeds that computed the tokens [start, end).

    A one-by-one feed is clipped to this range. Any other feed keeps the whole range of its pass,
    because the range identifies the pass.
    """
    for feed, kept_end in kept(feeds, start, end):
        first = max(feed.start, start)
        if first < kept_end:
            is_whole = not feed.one_by_one or (first, kept_end) == (feed.start, feed.end)
            yield feed if is_whole else Feed(first, kept_end, one_by_one=True)


def common_feeding_end(a: Sequence[Feed], b: Sequence[Feed], start: int, end: int) -> int:
    """Return the position in [start, end] up to which `a` and `b` contain the same passes."""
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
    """Yield each pair of a feed in `a` and a feed in `b` that overlap, in the order of tokens."""
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
