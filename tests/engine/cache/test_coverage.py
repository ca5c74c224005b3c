"""What is given up first, on trees of numbers."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from engine.cache.budget import DropLogits, DropNode, DropSnapshot, GiveUpHot, Victim
from engine.cache.coverage import coverage_aware
from engine.chat.prompt import PointKind
from engine.types import ConversationId
from tests.fakes.cache_feeder import CacheFeeder, Points

STRIDE, PROMPT, BRANCH = PointKind.STRIDE, PointKind.PROMPT, PointKind.BRANCH
TURN, TAIL, SYSTEM = PointKind.TURN, PointKind.TAIL, PointKind.SYSTEM


def numbers(start: int, num_tokens: int) -> list[int]:
    return list(range(start, start + num_tokens))


def victims(feeder: CacheFeeder) -> list[Victim]:
    """Everything in the order in which it goes; each is given up, as the policy expects."""
    given_up: list[Victim] = []
    cache = feeder.cache
    for victim in coverage_aware(cache.holdings()):
        given_up.append(victim)
        before = cache.ledger().total_bytes
        freed = cache.evict(victim)
        assert before - freed == cache.ledger().total_bytes
        cache.check_invariants()
    return given_up


def points_given_up(feeder: CacheFeeder) -> list[int]:
    """Where the snapshots end that go, in that order."""
    return [v.node.end for v in victims(feeder) if isinstance(v, DropSnapshot)]


def without_hot(feeder: CacheFeeder) -> CacheFeeder:
    feeder.cache.evict_hot()
    return feeder


def test_what_covers_least_goes_first() -> None:
    feeder = CacheFeeder()
    feeder.turn("A", numbers(0, 1000), {400: TURN, 500: TURN, 1000: TURN})

    # Without 500, 1000 is 600 tokens from the next point.
    assert points_given_up(without_hot(feeder)) == [500, 400, 1000]


def test_who_asked_for_a_point_asks_for_the_one_above() -> None:
    def build(num_branches: int) -> CacheFeeder:
        feeder = CacheFeeder()
        feeder.turn("A", numbers(0, 300), {300: TURN})
        for branch in range(num_branches):
            start = 1000 * (branch + 1)
            feeder.turn("A", numbers(0, 300) + numbers(start, 20), {320: TURN})
        feeder.turn("B", numbers(9000, 310), {310: TURN})
        return without_hot(feeder)

    # The short branches go first; who came back to them needs what they share.
    assert points_given_up(build(0)) == [300, 310]
    assert points_given_up(build(3)) == [320, 320, 320, 310, 300]


def test_a_point_in_use_is_fresh_and_those_above_it_are_not() -> None:
    feeder = CacheFeeder()
    feeder.turn("A", numbers(0, 400), {200: TURN, 400: TURN})
    feeder.turn("B", numbers(5000, 400), {200: TURN, 400: TURN})
    for _ in range(5):
        feeder.turn("A", [*numbers(0, 400), 1], {})
    goes = {
        (v.node.token_ids[0], v.node.end): i
        for i, v in enumerate(victims(without_hot(feeder)))
        if isinstance(v, DropSnapshot)
    }

    assert goes[5200, 400] < goes[200, 400]
    assert max(goes[0, 200], goes[5000, 200]) < goes[200, 400]


def test_points_of_long_prefills_go_before_ends_of_replies() -> None:
    feeder = CacheFeeder()
    feeder.turn("A", numbers(0, 800), {200: STRIDE, 400: TAIL, 600: STRIDE, 800: TAIL})

    assert set(points_given_up(without_hot(feeder))[:2]) == {200, 600}


@pytest.mark.parametrize("state_tokens", [0, 100])
def test_logits_that_save_one_token_go_first(state_tokens: int) -> None:
    feeder = CacheFeeder(state_tokens=state_tokens)
    points: Points = {299: TURN, 300: PROMPT, 400: TAIL}
    feeder.turn("A", numbers(0, 400), points)
    first = victims(without_hot(feeder))[0]

    if state_tokens:
        # The state at 300 saves as little as its logits and is larger.
        assert isinstance(first, DropSnapshot)
        assert first.node.end == 300
    else:
        assert isinstance(first, DropLogits)


def test_logits_go_before_a_state_that_others_need() -> None:
    feeder = CacheFeeder()
    feeder.turn("A", numbers(0, 300), {300: PROMPT})
    for branch in range(12):
        feeder.turn("A", numbers(0, 300) + numbers(1000 * (branch + 1), 20), {320: TAIL})
    given_up = victims(without_hot(feeder))
    shared = [v for v in given_up if not isinstance(v, GiveUpHot) and v.node.end == 300]

    assert [type(v) for v in shared] == [DropLogits, DropSnapshot]


def test_a_leaf_without_a_point_is_useless_and_takes_along_what_led_there() -> None:
    feeder = CacheFeeder()
    feeder.turn("A", numbers(0, 300), {100: TURN, 200: STRIDE, 300: TURN})
    feeder.turn("A", numbers(0, 100) + numbers(5000, 900), {1000: TAIL})
    without_hot(feeder)
    for victim in coverage_aware(feeder.cache.holdings()):
        feeder.cache.evict(victim)
        if isinstance(victim, DropSnapshot) and victim.node.end == 300:
            break

    assert [node.end for node in feeder.cache.nodes()] == [100, 1000]


def test_an_interior_point_keeps_its_kv() -> None:
    feeder = CacheFeeder()
    feeder.turn("A", numbers(0, 300), {100: STRIDE, 300: TURN})
    without_hot(feeder)
    held = feeder.cache.ledger()
    feeder.cache.set_budget(held.total_bytes - 1)

    assert feeder.cache.ledger().kv_bytes == held.kv_bytes
    assert feeder.cache.ledger().snapshot_bytes < held.snapshot_bytes


def test_pinned_goes_after_the_rest_and_shared_system_prompts_last() -> None:
    feeder = CacheFeeder()
    system = numbers(0, 100)
    for chat, start in (("pinned", 1000), ("A", 2000), ("B", 3000)):
        feeder.turn(chat, system + numbers(start, 300), {100: SYSTEM, 400: TAIL})
    for _ in range(40):
        feeder.turn("A", system + numbers(2000, 300) + [1], {})
    feeder.cache.pin(ConversationId("pinned"), pinned=True)
    ends = [
        (v.node.end, "pinned" in v.node.users)
        for v in victims(feeder)
        if isinstance(v, DropSnapshot)
    ]

    assert ends == [(400, False), (400, False), (400, True), (100, True)]
    feeder.turn("pinned", numbers(0, 50), {50: TAIL})
    feeder.cache.pin(ConversationId("pinned"), pinned=False)
    assert feeder.cache.holdings().pinned == set()


def test_a_short_system_prompt_is_nothing_special() -> None:
    feeder = CacheFeeder()
    for chat in "AB":
        feeder.turn(chat, numbers(0, 3) + numbers(1000 * ord(chat), 300), {3: SYSTEM, 303: TAIL})

    assert points_given_up(feeder)[0] == 3


def test_spare_room_goes_before_what_would_have_to_be_fed_again() -> None:
    feeder = CacheFeeder(state_tokens=500)
    feeder.turn("A", numbers(0, 300), {300: TAIL})
    feeder.turn("B", numbers(5000, 300), {300: TAIL})
    held = feeder.cache.ledger()
    feeder.cache.set_budget(held.total_bytes - 1)

    assert feeder.cache.ledger().snapshot_bytes == held.snapshot_bytes
    assert feeder.cache.ledger().hot_bytes < held.hot_bytes


def test_moving_a_long_chat_for_little_spare_room_comes_after_old_points() -> None:
    feeder = CacheFeeder()
    feeder.turn("A", numbers(0, 300), {100: STRIDE, 300: TAIL})
    for _ in range(60):
        feeder.turn("B", numbers(1000, 20_000), {20_000: TAIL})
    order = victims(feeder)
    long = next(
        i for i, v in enumerate(order) if isinstance(v, GiveUpHot) and v.hot.conversation_id == "B"
    )
    old = next(i for i, v in enumerate(order) if isinstance(v, DropSnapshot) and v.node.end == 100)

    assert old < long


def test_a_cache_full_of_what_leads_nowhere_goes_first() -> None:
    """Its K/V would not be moved but dropped."""
    feeder = CacheFeeder(state_tokens=100)
    ends = range(100, 1000, 100)
    feeder.turn("dead", numbers(0, 1000), dict.fromkeys(ends, TAIL) | {1000: TAIL})
    for node in list(feeder.cache.nodes()):
        node.snapshot = None
    feeder.turn("A", numbers(5000, 300), {100: STRIDE, 300: TAIL})
    first = victims(feeder)[0]

    assert isinstance(first, GiveUpHot)
    assert first.hot.conversation_id == "dead"


def test_kv_alone_goes_leaf_by_leaf_the_oldest_first() -> None:
    feeder = CacheFeeder(state_tokens=0)
    for start in (1000, 2000, 3000):
        feeder.turn("A", numbers(0, 100) + numbers(start, 100), {})
    without_hot(feeder)
    dropped = [v.node.token_ids[0] for v in victims(feeder) if isinstance(v, DropNode)]

    assert dropped == [1000, 2000, 3000, 0]


def test_a_lent_leaf_goes_when_its_turn_comes() -> None:
    """Its cache has no spare room, so that giving it up alone frees nothing."""
    feeder = CacheFeeder(state_tokens=0)
    num_tokens = 256
    feeder.turn("old", numbers(0, num_tokens), {})
    for _ in range(30):
        feeder.turn("B", numbers(1000, num_tokens), {})
    first, second, *_ = victims(feeder)

    assert isinstance(first, GiveUpHot)
    assert first.hot.conversation_id == "old"
    assert isinstance(second, DropNode)
    assert second.node.token_ids[0] == 0


chats = st.sampled_from("ABCD")
# A prompt that goes on from a common beginning: how much of it, what follows, where points lie.
turns = st.tuples(
    chats,
    st.integers(0, 4),
    st.integers(1, 3),
    st.lists(st.sampled_from(list(PointKind)), min_size=1, max_size=3),
)
budgets = st.sampled_from([0, 20_000, 60_000, 1 << 40])


@settings(deadline=None, max_examples=60)
@given(
    st.lists(turns, min_size=1, max_size=12),
    st.sampled_from([0, 30]),
    budgets,
    st.sets(chats, max_size=2),
)
def test_everything_can_be_given_up_and_is_counted_right(
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
        assert feeder.cache.ledger().total_bytes <= budget
    victims(feeder)

    assert feeder.cache.ledger().total_bytes == 0
    assert not list(feeder.cache.nodes())
