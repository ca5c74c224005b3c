"""The byte budget holds whenever no request runs, whatever requests did before, and in which order."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings, strategies as st

from engine.cache.holdings import Lease
from engine.cache.points import PointKind
from engine.types import ConversationId
from tests.fakes.cache_feeder import CacheFeeder

TAIL = PointKind.TAIL
MIN_BUDGET = 100_000  # bytes; the buffers of the longest prompt here take about 35,000


def numbers(start: int, num_tokens: int) -> list[int]:
    return list(range(start, start + num_tokens))


def test_two_chats_that_restore_the_same_state_stay_in_the_budget() -> None:
    feeder = CacheFeeder(state_tokens=0)
    feeder.turn("first", numbers(0, 2_000), {})
    feeder.cache.eviction.evict_hot()
    shared = feeder.cache.holdings.ledger().total_bytes
    feeder.turn("old", numbers(50_000, 2_000), {})
    # The shared state is in memory once, then three times, then twice.
    feeder.cache.set_budget(feeder.cache.holdings.ledger().total_bytes + shared - 1_000)
    prompts = {
        chat: numbers(0, 2_000) + numbers(start, 10) for chat, start in (("A", 0), ("B", 90))
    }
    leases = {chat: feeder.start(chat, token_ids) for chat, token_ids in prompts.items()}
    for chat, lease in leases.items():
        feeder.feed(lease, prompts[chat], {})
        feeder.cache.publish(lease)

    feeder.cache.check_invariants()


def test_two_new_chats_that_begin_together_stay_in_the_budget() -> None:
    feeder = CacheFeeder(state_tokens=0)
    feeder.turn("old", numbers(50_000, 2_000), {})
    held = feeder.cache.holdings.ledger().total_bytes
    feeder.cache.set_budget(held + held * 3 // 2)
    prompts = {chat: numbers(start, 2_000) for chat, start in (("A", 0), ("B", 10_000))}
    leases = {chat: feeder.start(chat, token_ids) for chat, token_ids in prompts.items()}
    for chat, lease in leases.items():
        feeder.feed(lease, prompts[chat], {})
        feeder.cache.publish(lease)

    feeder.cache.check_invariants()


def test_state_that_a_failed_request_had_locked_is_evicted_when_it_ends() -> None:
    feeder = CacheFeeder(state_tokens=0)
    feeder.turn("A", numbers(0, 2_000), {})
    lease = feeder.start("A", numbers(0, 2_010))
    feeder.cache.set_budget(feeder.cache.holdings.ledger().total_bytes // 2)
    feeder.cache.abandon(lease)

    feeder.cache.check_invariants()


@settings(max_examples=40)
@given(st.integers(0, 2**32))
def test_budget_holds_after_any_requests(seed: int) -> None:
    Requests(Random(seed)).run(10)


class Requests:
    """Random requests that run side by side, on a budget that changes."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._feeder = CacheFeeder(
            state_tokens=random.choice([0, 100, 1_600]), max_hot=random.choice([1, 2, 4])
        )
        self._running: list[tuple[Lease, list[int]]] = []
        self._texts: list[list[int]] = [[]]

    def run(self, num_rounds: int) -> None:
        steps = (self._start, self._start, self._feed, self._publish, self._abandon)
        for _ in range(num_rounds):
            for _ in range(8):
                self._random.choice((*steps, self._change_budget, self._evict))()
            while self._running:
                self._random.choice((self._publish, self._abandon))()
            self._feeder.cache.check_invariants()

    def _start(self) -> None:
        chat = self._random.choice("ABCDE")
        if any(lease.hot.conversation_id == chat for lease, _ in self._running):
            return
        known = self._random.choice(self._texts)
        start = self._random.choice((len(known), self._random.randint(0, len(known))))
        added = [self._random.randrange(1_000) for _ in range(self._random.randint(1, 300))]
        token_ids = known[:start] + added
        lease = self._feeder.cache.acquire(
            ConversationId(chat),
            token_ids,
            self._feeder.adapter.new_caches,
            room=len(token_ids),
            side=chat == "E",
        )
        self._running.append((lease, token_ids))

    def _feed(self) -> None:
        if not self._running:
            return
        lease, token_ids = self._random.choice(self._running)
        if lease.hot.num_tokens < len(token_ids):
            end = self._random.randint(lease.hot.num_tokens + 1, len(token_ids))
            kind = self._random.choice(list(PointKind))
            self._feeder.feed(lease, token_ids[:end], {end: kind})

    def _publish(self) -> None:
        ready = [one for one in self._running if not one[0].side]
        if not ready:
            return
        lease, token_ids = self._random.choice(ready)
        self._feeder.feed(lease, token_ids, {len(token_ids): TAIL})
        self._feeder.cache.publish(lease)
        self._running.remove((lease, token_ids))
        self._texts.append(token_ids)

    def _abandon(self) -> None:
        if not self._running:
            return
        lease, _ = self._running.pop(self._random.randrange(len(self._running)))
        self._feeder.cache.abandon(lease)

    def _change_budget(self) -> None:
        held = self._feeder.cache.holdings.ledger().total_bytes
        self._feeder.cache.set_budget(max(MIN_BUDGET, round(held * self._random.uniform(0.6, 1.4))))

    def _evict(self) -> None:
        self._feeder.cache.eviction.evict_hot()
