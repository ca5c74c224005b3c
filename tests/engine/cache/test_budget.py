"""The budget of the prefix cache while requests run, and pinned conversations."""

from __future__ import annotations

from engine.cache.points import PointKind, least_valuable
from engine.types import ConversationId
from tests.fakes.cache_feeder import CacheFeeder

STRIDE, TAIL, PROMPT = PointKind.STRIDE, PointKind.TAIL, PointKind.PROMPT


def numbers(start: int, num_tokens: int) -> list[int]:
    return list(range(start, start + num_tokens))


def test_growing_answer_evicts_other_state_and_stays_in_the_budget() -> None:
    feeder = CacheFeeder()
    for chat, start in (("A", 0), ("B", 50_000), ("C", 90_000)):
        feeder.turn(chat, numbers(start, 2_000), {2_000: TAIL})
    budget = feeder.cache.holdings.ledger().total_bytes
    feeder.cache.set_budget(budget)
    lease = feeder.start("D", numbers(200_000, 100))
    feeder.feed(lease, numbers(200_000, 100), {100: PROMPT})
    held: list[int] = []
    for num_tokens in range(200, 4_000, 100):
        feeder.feed(lease, numbers(200_000, num_tokens), {})
        held.append(feeder.cache.holdings.ledger().total_bytes)

    assert max(held) <= budget
    assert feeder.cache.holdings.counters.evictions > 0
    feeder.cache.check_invariants()


def test_state_restored_from_the_tree_is_not_counted_twice() -> None:
    feeder = CacheFeeder()
    feeder.turn("A", numbers(0, 20_000), {20_000: TAIL})
    feeder.turn("B", numbers(50_000, 2_000), {2_000: TAIL})
    feeder.cache.eviction.evict_hot()
    feeder.cache.set_budget(feeder.cache.holdings.ledger().total_bytes + 500_000)
    feeder.turn("A", numbers(0, 20_010), {20_005: PROMPT, 20_010: TAIL})

    assert feeder.cache.holdings.counters.evictions == 0


def test_first_chunk_of_a_new_conversation_counts_for_the_budget() -> None:
    feeder = CacheFeeder()
    feeder.turn("A", numbers(0, 2_000), {2_000: TAIL})
    budget = feeder.cache.holdings.ledger().total_bytes + feeder.layout.snapshot_bytes
    feeder.cache.set_budget(budget)
    lease = feeder.start("B", numbers(50_000, 1_000))
    feeder.feed(lease, numbers(50_000, 1_000), {1_000: TAIL})

    assert feeder.cache.holdings.ledger().total_bytes <= budget
    assert feeder.cache.holdings.counters.evictions > 0


def test_state_restored_by_a_failed_request_is_not_held_twice() -> None:
    feeder = CacheFeeder()
    feeder.turn("A", numbers(0, 20_000), {20_000: TAIL})
    feeder.cache.eviction.evict_hot()
    feeder.cache.set_budget(feeder.cache.holdings.ledger().total_bytes + 500_000)
    feeder.cache.abandon(feeder.start("A", numbers(0, 20_010)))

    feeder.cache.check_invariants()
    assert feeder.start("A", numbers(0, 20_010)).restored == 20_000


def test_state_forgotten_while_in_use_is_dropped_when_the_request_ends() -> None:
    feeder = CacheFeeder()
    feeder.turn("A", numbers(0, 100), {50: TAIL, 100: TAIL})
    feeder.cache.eviction.evict_hot()
    lease = feeder.start("A", numbers(0, 110))
    feeder.cache.forget(ConversationId("A"))
    assert [node.end for node in feeder.cache.holdings.tree.nodes()] == [50, 100]
    lease.hot.leaves.kv[0].offset = 3
    feeder.cache.publish(lease)

    assert not list(feeder.cache.holdings.tree.nodes())
    assert feeder.cache.holdings.ledger().total_bytes == 0


def test_side_request_evicts_nothing() -> None:
    feeder = CacheFeeder()
    feeder.turn("A", numbers(0, 2_000), {2_000: TAIL})
    feeder.cache.set_budget(feeder.cache.holdings.ledger().total_bytes)
    lease = feeder.cache.acquire(
        ConversationId("title"), [7], feeder.adapter.new_caches, room=8, side=True
    )
    feeder.feed(lease, numbers(50_000, 5_000), {100: STRIDE, 5_000: TAIL})
    feeder.cache.abandon(lease)

    assert feeder.cache.holdings.counters.evictions == 0
    assert feeder.start("A", numbers(0, 2_001)).restored == 2_000


def test_long_prompt_alone_in_the_cache_drops_some_of_its_own_points() -> None:
    feeder = CacheFeeder(budget_bytes=1_200_000)
    token_ids = numbers(0, 4_000)
    lease = feeder.start("A", token_ids)
    feeder.feed(lease, token_ids, dict.fromkeys(range(200, 4_001, 200), STRIDE))
    ends = [point.num_tokens for point in lease.snapshots]
    gaps = [end - start for start, end in zip([0, *ends], ends, strict=False)]

    assert feeder.cache.holdings.ledger().total_bytes <= 1_200_000
    assert ends[-1] == 4_000
    assert len(ends) > 5
    assert max(gaps) <= 2 * min(gaps[:-1])


def test_newest_point_is_never_the_least_valuable() -> None:
    feeder = CacheFeeder()
    lease = feeder.start("A", numbers(0, 100))
    assert least_valuable([]) is None
    feeder.feed(lease, numbers(0, 100), {100: STRIDE})
    assert least_valuable(lease.snapshots) is None
    feeder.feed(lease, numbers(0, 400), {200: TAIL, 300: STRIDE, 400: STRIDE})
    point = least_valuable(lease.snapshots)

    assert point is not None
    assert point.num_tokens in (100, 300)


def test_pinned_conversation_is_kept_longer_than_a_newer_one() -> None:
    feeder = CacheFeeder()
    feeder.turn("pinned", numbers(0, 500), {500: TAIL})
    feeder.cache.pin(ConversationId("pinned"), pinned=True)
    for number in range(1, 20):
        feeder.turn("A", numbers(1_000 * number, 500), {500: TAIL})
        feeder.cache.set_budget(2 * 200_000)

    assert feeder.start("pinned", numbers(0, 501)).restored == 500
