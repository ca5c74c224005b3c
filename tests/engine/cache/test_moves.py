"""Copies of K/V, measured with MLX's allocator.

To finish a turn, or to switch to another chat, copies nothing. If a prompt differs from the
conversation's earlier tokens, only the K/V after the first different token are copied.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import mlx.core as mx
from mlx_lm.models.cache import KVCache

from engine.cache import kv
from engine.cache.holdings import Lease
from engine.cache.layout import Leaves
from engine.cache.points import PointKind
from engine.cache.trees import evaluate, tree_bytes
from tests.fakes.cache_feeder import CacheFeeder

TAIL = PointKind.TAIL
# Bytes allowed for scalars and index arrays. In these tests the K/V of a token take 64 bytes, the
# K/V of a conversation a megabyte.
SMALL = 4096


@dataclass(frozen=True, slots=True)
class Allocated:
    """The MLX memory that a call allocated, in bytes, relative to the memory held before it."""

    # Bytes still allocated after the call. Negative if it freed more than it allocated.
    kept: int
    peak: int  # most bytes allocated during the call


def allocated(act: Callable[[], object]) -> Allocated:
    gc.collect()
    mx.clear_cache()
    before = mx.get_active_memory()
    mx.reset_peak_memory()
    result = act()
    evaluate(result)
    gc.collect()
    return Allocated(mx.get_active_memory() - before, mx.get_peak_memory() - before)


def numbers(start: int, num_tokens: int) -> list[int]:
    return list(range(start, start + num_tokens))


def opened(feeder: CacheFeeder, chat: str, token_ids: list[int]) -> Lease:
    """Return the lease of a turn that is fed but not finished."""
    lease = feeder.start(chat, token_ids)
    feeder.feed(lease, token_ids, {len(token_ids): TAIL})
    return lease


def test_finishing_a_turn_copies_nothing() -> None:
    feeder = CacheFeeder()
    lease = opened(feeder, "A", numbers(0, 20_000))
    finished = allocated(lambda: feeder.cache.publish(lease))

    assert finished.peak <= SMALL
    assert finished.kept <= 0


def test_switching_between_hot_chats_copies_nothing() -> None:
    feeder = CacheFeeder()
    for chat, start in (("A", 0), ("B", 50_000)):
        feeder.cache.publish(opened(feeder, chat, numbers(start, 20_000)))
    for chat, start in (("A", 0), ("B", 50_000), ("A", 0)):
        leases: list[Lease] = []
        switched = allocated(lambda: leases.append(feeder.start(chat, numbers(start, 20_001))))  # noqa: B023 — called at once

        assert leases[0].restored == 20_000
        assert switched.peak <= SMALL
        feeder.cache.publish(leases[0])


def test_prompt_that_forks_off_allocates_only_the_abandoned_kv() -> None:
    feeder = CacheFeeder()
    shared, old = numbers(0, 20_000), numbers(30_000, 5_000)
    feeder.turn("A", shared + old, {20_000: TAIL, 25_000: TAIL})
    leases: list[Lease] = []
    forked = allocated(lambda: leases.append(feeder.start("A", [*shared, 1])))
    copied = 5_000 * feeder.layout.kv_bytes_per_token

    assert leases[0].restored == 20_000
    assert abs(forked.kept - copied) <= SMALL
    assert forked.peak <= copied + SMALL
    feeder.cache.abandon(leases[0])


def test_large_buffers_grow_one_layer_at_a_time() -> None:
    caches: list[object] = [KVCache() for _ in range(4)]
    for cache in caches:
        keys = mx.zeros((1, 8, 8000, 64))  # 16 MB
        cast("KVCache", cache).update_and_fetch(keys, keys)  # pyright: ignore[reportUnknownMemberType]
    leaves = Leaves.of(caches)
    evaluate(leaves.buffers)
    before = tree_bytes(leaves.buffers)
    grown = allocated(lambda: kv.reserve(leaves, 9000))
    after = tree_bytes(leaves.buffers)

    assert abs(grown.kept - (after - before)) <= SMALL
    # The layers grow one after the other. At the peak, the old buffers of at most two of the four
    # layers may still be held.
    assert grown.peak <= grown.kept + before // 2


def test_evicting_a_parked_cache_frees_its_spare_room() -> None:
    feeder = CacheFeeder()
    feeder.turn("A", numbers(0, 20_000), {5_000: TAIL, 20_000: TAIL})
    spare = feeder.cache.holdings.ledger().hot_bytes - 20_000 * feeder.layout.kv_bytes_per_token
    evicted = allocated(feeder.cache.eviction.evict_hot)

    assert spare > 100_000
    assert abs(evicted.kept + spare) <= SMALL
