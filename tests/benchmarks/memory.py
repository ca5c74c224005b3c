"""Memory of twenty chats with a common system prompt, compared with mlx_lm.server's prompt cache.

    python -m tests.benchmarks.memory

Twenty chats have the same system prompt of 2,000 tokens and three turns. A turn is a message of 100
tokens and a reply of 200. Two of the chats are hot: their live caches stay in memory. Then one chat
gets ten versions of its last message. The model has the proportions of Qwen3.5-4B, with 64 bytes of
K/V per token instead of 32 KiB, and computes nothing. For comparison, mlx_lm's LRUPromptCache is
filled as mlx_lm.server fills it: after the system prompt, after each user message and after each
reply. The unit of all figures is the K/V of one token. "active" is the memory that MLX's allocator
reports.
"""

# mlx-lm is untyped.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

import mlx.core as mx
from mlx_lm.models.cache import ArraysCache, KVCache, LRUPromptCache

from engine.cache.points import PointKind
from engine.cache.prefix_cache import ANOTHER_TOKEN
from engine.cache.trees import evaluate
from engine.types import ConversationId
from tests.fakes.cache_feeder import CacheFeeder, Points

SHARE_LIMIT = 0.5
NUM_CHATS, NUM_TURNS, NUM_BRANCHES, MAX_HOT = 20, 3, 10, 2
SYSTEM_LEN, MESSAGE_LEN, REPLY_LEN = 2000, 100, 200
TOKEN_BYTES = 64


@dataclass(slots=True)
class MeasuredChat:
    """A chat, with the token ids of its newest prompt and reply."""

    name: str
    token_ids: list[int] = field(default_factory=lambda: list(range(SYSTEM_LEN)))

    def answered(self, number: int) -> Points:
        """Add a message and a reply. Return the resume points, by their number of tokens."""
        points: Points = {SYSTEM_LEN: PointKind.SYSTEM} if len(self.token_ids) == SYSTEM_LEN else {}
        for length, kind in ((MESSAGE_LEN, PointKind.PROMPT), (REPLY_LEN, PointKind.TAIL)):
            first = 1_000_000 * (number + 1) + len(self.token_ids)
            self.token_ids.extend(range(first, first + length))
            points[len(self.token_ids)] = kind
        return points


class Server:
    """mlx_lm's prompt cache, used as mlx_lm.server uses it."""

    def __init__(self, feeder: CacheFeeder) -> None:
        self._feeder = feeder
        self.entries = LRUPromptCache(max_size=1 << 20)

    def turn(self, token_ids: list[int], points: Points) -> None:
        found, rest = self.entries.fetch_nearest_cache("model", token_ids)
        caches = cast("list[object]", found) if found else self._feeder.adapter.new_caches()
        fed = len(token_ids) - len(rest)
        for end in sorted(points):
            if end > fed:
                self._feeder.adapter.forward(token_ids[fed:end], caches)
                fed = end
                self.insert(token_ids[:end], caches)

    def insert(self, token_ids: list[int], caches: Sequence[object]) -> None:
        """Insert exact copies of the caches. The server copies a row of its batch in this way."""
        kv, recurrent = KVCache(), ArraysCache(1)
        keys, values = cast(
            "tuple[mx.array, mx.array]", cast("KVCache", caches[0]).keys_and_values()
        )
        kv.state = (mx.contiguous(keys), mx.contiguous(values), len(token_ids))
        recurrent[0] = cast("ArraysCache", caches[1])[0]
        evaluate(kv.keys, kv.values, recurrent[0])
        self.entries.insert_cache("model", token_ids, [kv, recurrent])

    def newest(self, chats: Sequence[MeasuredChat]) -> LRUPromptCache:
        """Return a cache with one entry per chat: the entry that ends with the last reply."""
        entries = LRUPromptCache(max_size=len(chats))
        for chat in chats:
            caches, _ = self.entries.fetch_nearest_cache("model", chat.token_ids)
            assert caches is not None
            entries.insert_cache("model", chat.token_ids, caches)
        return entries


def main() -> int:
    """Return 0 if Rejoinder is within both limits.

    First: Rejoinder needs at most half of the memory of mlx_lm.server's entries. Second: if the
    budget is only as large as mlx_lm.server's newest entries, one per chat, Rejoinder still reads
    no token again.
    """
    before = active()
    chats = [MeasuredChat(f"c{number}") for number in range(NUM_CHATS)]
    ours = fed(chats)
    print(f"{NUM_CHATS} chats, in tokens' K/V".ljust(46) + "  counted    active  per chat  points")
    held = ours.cache.statistics()
    show("Rejoinder", held.total_bytes, active() - before, held.num_snapshots)

    between = active()
    server = Server(ours)
    others = [MeasuredChat(chat.name) for chat in chats]
    for number, chat in turns_of(others):
        server.turn(chat.token_ids, chat.answered(number))
    everything, num_entries = server.entries.nbytes, len(server.entries)
    show("mlx_lm.server, everything it puts in", everything, active() - between, num_entries)
    server.entries = server.newest(others)
    newest = server.entries.nbytes
    show("mlx_lm.server, the newest entry of each chat", newest, active() - between, NUM_CHATS)

    report_sharing(ours, chats)
    report_branches(ours, chats[0])
    share = held.total_bytes / everything
    print(f"Rejoinder / everything: {share:.2f}")
    missing = report_budgets(newest)
    return 0 if share <= SHARE_LIMIT and missing[100] == 0 else 1


def fed(chats: Sequence[MeasuredChat]) -> CacheFeeder:
    feeder = CacheFeeder(max_hot=MAX_HOT)
    for number, chat in turns_of(chats):
        feeder.turn(chat.name, chat.token_ids, chat.answered(number))
    return feeder


def turns_of(chats: Sequence[MeasuredChat]) -> Iterator[tuple[int, MeasuredChat]]:
    """Yield (number, chat) for each of NUM_TURNS turns of all chats. The chats alternate."""
    for _ in range(NUM_TURNS):
        yield from enumerate(chats)


def active() -> int:
    gc.collect()
    mx.clear_cache()
    return mx.get_active_memory()


def show(name: str, nbytes: int, active_bytes: int, num_points: int) -> None:
    tokens, active_tokens = nbytes / TOKEN_BYTES, active_bytes / TOKEN_BYTES
    print(
        f"{name:46}{tokens:9,.0f}{active_tokens:10,.0f}{tokens / NUM_CHATS:10,.0f}"
        f"{num_points / NUM_CHATS:8.1f}"
    )


def report_sharing(feeder: CacheFeeder, chats: Sequence[MeasuredChat]) -> None:
    """Check that the system prompt's K/V is held once, plus at most once in each hot chat."""
    ledger = feeder.cache.holdings.ledger()
    hot = [
        cache
        for chat in chats
        if (cache := feeder.cache.holdings.parked.get(ConversationId(chat.name)))
    ]
    spare = sum(cache.nbytes // TOKEN_BYTES - cache.num_tokens for cache in hot)
    distinct = SYSTEM_LEN + sum(len(chat.token_ids) - SYSTEM_LEN for chat in chats)
    num_kv = (ledger.kv_bytes + ledger.hot_bytes) // TOKEN_BYTES
    twice = num_kv - distinct - spare
    assert 0 <= twice <= len(hot) * SYSTEM_LEN
    print(
        f"K/V of {num_kv:,} tokens: {distinct:,} distinct ones, {twice:,} held again by "
        f"{len(hot)} hot chats, {spare:,} spare room"
    )


def report_branches(feeder: CacheFeeder, chat: MeasuredChat) -> None:
    """Add versions of the last message. Print the memory of their K/V and their resume points."""
    feeder.cache.eviction.evict_hot()
    before = feeder.cache.holdings.ledger()
    kept = len(chat.token_ids) - MESSAGE_LEN - REPLY_LEN
    for branch in range(NUM_BRANCHES):
        version = MeasuredChat(chat.name, chat.token_ids[:kept])
        points = version.answered(NUM_CHATS + branch)
        feeder.turn(version.name, version.token_ids, points)
    feeder.cache.eviction.evict_hot()
    after = feeder.cache.holdings.ledger()
    kv_tokens = (after.kv_bytes - before.kv_bytes) / TOKEN_BYTES
    point_tokens = (after.snapshot_bytes - before.snapshot_bytes) / TOKEN_BYTES
    print(
        f"{NUM_BRANCHES} branches of one chat: {kv_tokens:,.0f} tokens of K/V, of their own "
        f"{NUM_BRANCHES * (MESSAGE_LEN + REPLY_LEN):,}; points {point_tokens:,.0f}"
    )


def report_budgets(newest_bytes: int) -> dict[int, int]:
    """Return how many tokens all chats have to read again with budgets of different sizes.

    Key: budget in percent of `newest_bytes`. Value: number of tokens that are read again. The
    twenty chats have 58,000 tokens.
    """
    missing: dict[int, int] = {}
    chats = [MeasuredChat(f"c{number}") for number in range(NUM_CHATS)]
    feeder = fed(chats)
    for percent in (100, 90, 80, 70, 60, 50):
        feeder.cache.set_budget(newest_bytes * percent // 100)
        found = [
            feeder.cache.match(ConversationId(c.name), (*c.token_ids, ANOTHER_TOKEN)) for c in chats
        ]
        rests = (len(c.token_ids) - m.restored for c, m in zip(chats, found, strict=True))
        missing[percent] = sum(rests)
        print(
            f"Rejoinder in {percent:3} % of the newest entries:"
            f" {missing[percent]:6,} tokens to read again"
        )
    return missing


if __name__ == "__main__":
    sys.exit(main())
