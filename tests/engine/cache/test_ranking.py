"""The order in which CoverageRanking evicts, on trees of plain numbers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings, strategies as st

from engine.cache.points import PointKind
from engine.cache.policy import EvictHot, EvictLogits, EvictNode, EvictSnapshot, Victim
from engine.cache.ranking import CoverageRanking
from engine.types import ConversationId
from tests.fakes.cache_feeder import CacheFeeder, Points

STRIDE, PROMPT, BRANCH = PointKind.STRIDE, PointKind.PROMPT, PointKind.BRANCH
TURN, TAIL, SYSTEM = PointKind.TURN, PointKind.TAIL, PointKind.SYSTEM


def numbers(start: int, num_tokens: int) -> list[int]:
    return list(range(start, start + num_tokens))


def evictions(feeder: CacheFeeder) -> Iterator[Victim]:
    """Evict all state, and yield each victim after its eviction."""
    cache = feeder.cache
    ranking = CoverageRanking(cache.holdings)
    while (victim := ranking.next_victim()) is not None:
        before = cache.holdings.ledger().total_bytes
        evicted = cache.eviction.evict(victim)
        ranking.update(evicted)
        assert before - evicted.num_bytes == cache.holdings.ledger().total_bytes
        cache.check_invariants()
        yield victim


def evicted_ends(feeder: CacheFeeder) -> list[int]:
    """Evict all state. Return the token positions of the snapshots in their order of eviction."""
    return [v.node.end for v in evictions(feeder) if isinstance(v, EvictSnapshot)]


def without_hot(feeder: CacheFeeder) -> CacheFeeder:
    feeder.cache.eviction.evict_hot()
    return feeder


def test_point_that_saves_fewest_tokens_is_evicted_first() -> None:
    feeder = CacheFeeder()
    feeder.turn("A", numbers(0, 1000), {400: TURN, 500: TURN, 1000: TURN})

    # The point at 500 saves only 100 tokens. Without it, the point at 1000 saves 600 tokens and the
    # point at 400 saves 400.
    assert evicted_ends(without_hot(feeder)) == [500, 400, 1000]


def test_uses_of_an_evicted_point_are_added_to_the_point_above() -> None:
    def build(num_branches: int) -> CacheFeeder:
        feeder = CacheFeeder()
        feeder.turn("A", numbers(0, 300), {300: TURN})
        for branch in range(num_branches):
            start = 1000 * (branch + 1)
            feeder.turn("A", numbers(0, 300) + numbers(start, 20), {320: TURN})
        feeder.turn("B", numbers(9000, 310), {310: TURN})
        return without_hot(feeder)

    # The ends of the branches, at 320, are evicted first. Their uses then count as uses of the
    # point at 300, so this point is evicted after the point at 310.
    assert evicted_ends(build(0)) == [300, 310]
    assert evicted_ends(build(3)) == [320, 320, 320, 310, 300]


def test_restored_point_counts_as_recent_and_points_above_do_not() -> None:
    feeder = CacheFeeder()
    feeder.turn("A", numbers(0, 400), {200: TURN, 400: TURN})
    feeder.turn("B", numbers(5000, 400), {200: TURN, 400: TURN})
    for _ in range(5):
        feeder.turn("A", [*numbers(0, 400), 1], {})
    goes = {
        (v.node.token_ids[0], v.node.end): i
        for i, v in enumerate(evictions(without_hot(feeder)))
        if isinstance(v, EvictSnapshot)
    }

    assert goes[5200, 400] < goes[200, 400]
    assert max(goes[0, 200], goes[5000, 200]) < goes[200, 400]


def test_stride_points_are_evicted_before_ends_of_replies() -> None:
    feeder = CacheFeeder()
    feeder.turn("A", numbers(0, 800), {200: STRIDE, 400: TAIL, 600: STRIDE, 800: TAIL})

    assert set(evicted_ends(without_hot(feeder))[:2]) == {200, 600}


@pytest.mark.parametrize("state_tokens", [0, 100])
def test_logits_or_snapshot_that_save_one_token_are_evicted_first(state_tokens: int) -> None:
    feeder = CacheFeeder(state_tokens=state_tokens)
    points: Points = {299: TURN, 300: PROMPT, 400: TAIL}
    feeder.turn("A", numbers(0, 400), points)
    first, *_ = evictions(without_hot(feeder))

    if state_tokens:
        # The snapshot at 300 saves one token, because the point before it is at 299. The logits at
        # 300 also save one token, but are smaller.
        assert isinstance(first, EvictSnapshot)
        assert first.node.end == 300
    else:
        assert isinstance(first, EvictLogits)


def test_logits_are_evicted_before_a_snapshot_that_branches_share() -> None:
    feeder = CacheFeeder()
    feeder.turn("A", numbers(0, 300), {300: PROMPT})
    for branch in range(12):
        feeder.turn("A", numbers(0, 300) + numbers(1000 * (branch + 1), 20), {320: TAIL})
    victims = list(evictions(without_hot(feeder)))
    shared = [v for v in victims if not isinstance(v, EvictHot) and v.node.end == 300]

    assert [type(v) for v in shared] == [EvictLogits, EvictSnapshot]


def test_useless_leaf_is_removed_with_ancestors_that_become_useless() -> None:
    feeder = CacheFeeder()
    feeder.turn("A", numbers(0, 300), {100: TURN, 200: STRIDE, 300: TURN})
    feeder.turn("A", numbers(0, 100) + numbers(5000, 900), {1000: TAIL})
    without_hot(feeder)
    for victim in evictions(feeder):
        if isinstance(victim, EvictSnapshot) and victim.node.end == 300:
            break

    assert [node.end for node in feeder.cache.holdings.tree.nodes()] == [100, 1000]


def test_eviction_of_an_interior_snapshot_keeps_its_kv() -> None:
    feeder = CacheFeeder()
    feeder.turn("A", numbers(0, 300), {100: STRIDE, 300: TURN})
    without_hot(feeder)
    held = feeder.cache.holdings.ledger()
    feeder.cache.set_budget(held.total_bytes - 1)

    assert feeder.cache.holdings.ledger().kv_bytes == held.kv_bytes
    assert feeder.cache.holdings.ledger().snapshot_bytes < held.snapshot_bytes


def test_pinned_points_are_evicted_late_and_shared_system_prompts_last() -> None:
    feeder = CacheFeeder()
    system = numbers(0, 100)
    for chat, start in (("pinned", 1000), ("A", 2000), ("B", 3000)):
        feeder.turn(chat, system + numbers(start, 300), {100: SYSTEM, 400: TAIL})
    for _ in range(40):
        feeder.turn("A", system + numbers(2000, 300) + [1], {})
    feeder.cache.pin(ConversationId("pinned"), pinned=True)
    ends = [
        (v.node.end, "pinned" in v.node.users)
        for v in evictions(feeder)
        if isinstance(v, EvictSnapshot)
    ]

    assert ends == [(400, False), (400, False), (400, True), (100, True)]
    feeder.turn("pinned", numbers(0, 50), {50: TAIL})
    feeder.cache.pin(ConversationId("pinned"), pinned=False)
    assert feeder.cache.holdings.pinned == set()


def test_short_system_prompt_is_evicted_like_any_point() -> None:
    feeder = CacheFeeder()
    for chat in "AB":
        feeder.turn(chat, numbers(0, 3) + numbers(1000 * ord(chat), 300), {3: SYSTEM, 303: TAIL})

    assert evicted_ends(feeder)[0] == 3


def test_spare_room_of_caches_is_evicted_before_snapshots() -> None:
    feeder = CacheFeeder(state_tokens=500)
    feeder.turn("A", numbers(0, 300), {300: TAIL})
    feeder.turn("B", numbers(5000, 300), {300: TAIL})
    held = feeder.cache.holdings.ledger()
    feeder.cache.set_budget(held.total_bytes - 1)

    assert feeder.cache.holdings.ledger().snapshot_bytes == held.snapshot_bytes
    assert feeder.cache.holdings.ledger().hot_bytes < held.hot_bytes


def test_long_cache_with_little_spare_room_is_evicted_after_old_points() -> None:
    feeder = CacheFeeder()
    feeder.turn("A", numbers(0, 300), {100: STRIDE, 300: TAIL})
    for _ in range(60):
        feeder.turn("B", numbers(1000, 20_000), {20_000: TAIL})
    order = list(evictions(feeder))
    long = next(
        i for i, v in enumerate(order) if isinstance(v, EvictHot) and v.hot.conversation_id == "B"
    )
    old = next(i for i, v in enumerate(order) if isinstance(v, EvictSnapshot) and v.node.end == 100)

    assert old < long


def test_live_cache_without_resume_points_is_evicted_first() -> None:
    """No request can resume in this live cache, so its K/V are dropped and not copied."""
    feeder = CacheFeeder(state_tokens=100)
    ends = range(100, 1000, 100)
    feeder.turn("dead", numbers(0, 1000), dict.fromkeys(ends, TAIL) | {1000: TAIL})
    for node in list(feeder.cache.holdings.tree.nodes()):
        node.snapshot = None
    feeder.turn("A", numbers(5000, 300), {100: STRIDE, 300: TAIL})
    first, *_ = evictions(feeder)

    assert isinstance(first, EvictHot)
    assert first.hot.conversation_id == "dead"


def test_kv_without_snapshots_is_evicted_oldest_leaf_first() -> None:
    feeder = CacheFeeder(state_tokens=0)
    for start in (1000, 2000, 3000):
        feeder.turn("A", numbers(0, 100) + numbers(start, 100), {})
    without_hot(feeder)
    dropped = [v.node.token_ids[0] for v in evictions(feeder) if isinstance(v, EvictNode)]

    assert dropped == [1000, 2000, 3000, 0]


def test_lent_leaf_is_evicted_right_after_its_live_cache() -> None:
    """Evicting the live cache frees nothing: it has no spare room, and the leaf keeps its K/V."""
    feeder = CacheFeeder(state_tokens=0)
    num_tokens = 256
    feeder.turn("old", numbers(0, num_tokens), {})
    for _ in range(30):
        feeder.turn("B", numbers(1000, num_tokens), {})
    first, second, *_ = evictions(feeder)

    assert isinstance(first, EvictHot)
    assert first.hot.conversation_id == "old"
    assert isinstance(second, EvictNode)
    assert second.node.token_ids[0] == 0


chats = st.sampled_from("ABCD")
# A prompt: its chat, the length of the beginning that it shares with other prompts (in units of 40
# tokens), the number of the branch that follows, and the kinds of its resume points.
turns = st.tuples(
    chats,
    st.integers(0, 4),
    st.integers(1, 3),
    st.lists(st.sampled_from(list(PointKind)), min_size=1, max_size=3),
)
budgets = st.sampled_from([0, 20_000, 60_000, 1 << 40])


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(
    st.lists(turns, min_size=1, max_size=12),
    st.sampled_from([0, 30]),
    budgets,
    st.sets(chats, max_size=2),
)
def test_evicting_everything_frees_the_bytes_reported(
    played: list[tuple[str, int, int, list[PointKind]]],
    state_tokens: int,
    budget: int,
    pinned: set[str],
) -> None:
    feeder = CacheFeeder(state_tokens=state_tokens, budget_bytes=budget, max_hot=2)
    for chat in pinned:
        feeder.cache.pin(ConversationId(chat), pinned=True)
    for chat, shared, branch, kinds in played:
        token_ids = numbers(0, 40 * shared) + numbers(1000 * branch, 150)
        step = len(token_ids) // len(kinds)
        points = {step * (i + 1): kind for i, kind in enumerate(kinds)}
        feeder.turn(chat, token_ids, points)
        feeder.cache.check_invariants()
        assert feeder.cache.holdings.ledger().total_bytes <= budget
    victims = list(evictions(feeder))

    assert len(set(victims)) == len(victims)
    assert feeder.cache.holdings.ledger().total_bytes == 0
    assert not list(feeder.cache.holdings.tree.nodes())
