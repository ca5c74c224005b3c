"""The token ids and the forward passes of a run, as bytes of a record. No mlx."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from engine.cache.feeding import Feed, clip
from engine.cache.radix import TokenRun

# Bytes of one forward pass. Feeds are intervals of at least one token, so a record has at most as
# many feeds as tokens.
FEED_BYTES = 24


def token_bytes(token_ids: Sequence[int]) -> bytes:
    """Return token ids as unsigned 32-bit integers, little-endian."""
    return array("I", token_ids).tobytes()


def feed_bytes(run: TokenRun) -> bytes:
    """Return the forward passes of a run as triples of 64-bit integers."""
    values = array("q")
    for feed in run.feeds:
        values.extend((feed.start, feed.end, int(feed.one_by_one)))
    return values.tobytes()


def run_of(tokens: bytes, feeds: bytes, start: int) -> TokenRun:
    """Return the run that token_bytes and feed_bytes describe.

    Raises:
        ValueError: the passes do not compute exactly the tokens of the run, in order.
    """
    ids, values = array("I"), array("q")
    ids.frombytes(tokens)
    values.frombytes(feeds)
    passes = tuple(
        Feed(first, end, one_by_one=one == 1)
        for first, end, one in zip(values[::3], values[1::3], values[2::3], strict=True)
    )
    end = start + len(ids)
    stops = [*(feed.start for feed in passes[1:]), end]
    is_whole = all(
        0 <= feed.start < stop <= feed.end for feed, stop in zip(passes, stops, strict=False)
    )
    begins = passes[0].start <= start if passes else not ids
    if not (is_whole and begins and passes == tuple(clip(passes, start, end))):
        raise ValueError("the forward passes do not fit the tokens")
    return TokenRun(tuple(ids), passes, start)
