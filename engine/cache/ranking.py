"""Coverage-aware order of eviction: first what saves the fewest tokens per byte.

A resume point saves the tokens between the next resume point above and itself, times the likelihood
that a request resumes there. When a point is evicted, its requests resume at the point above, and the
points below are farther from theirs: those are scored again. Pinned conversations are evicted after
all others, and system prompts that conversations share after those.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import NamedTuple

from engine.cache.holdings import Holdings
from engine.cache.hot import HotCache, KvNode, lender
from engine.cache.points import LIKELIHOOD, PointKind
from engine.cache.policy import (
    Evicted,
    EvictHot,
    EvictLogits,
    EvictNode,
    EvictSnapshot,
    Victim,
)

# Weight of a point before a later message: an edit resumes there, the next message does not.
_BEFORE_LATER = 0.5
# Weight of a node without a resume point: a request may still reuse its tokens.
_NO_POINT = 0.05
# Weight of a regeneration, which the prompt's logits save one pass. It happens soon or never, hence
# recency squared.
_REDRAW = 0.1
# Turns after which a node just used is half as likely to be used again.
_HALF_LIFE = 8
# Cost of moving a token's K/V out of a hot cache and back, in tokens fed.
_MOVE_COST = 1e-3
# A shorter system prompt is cheaper to read than to keep a snapshot for before all others.
_SYSTEM_LEN = 64

_MESSAGES = (PointKind.TURN, PointKind.TAIL)
_PINNED, _SYSTEM = 1, 2


class _Offer(NamedTuple):
    """A victim and its cost. The lowest tier is evicted first, then the fewest tokens per byte."""

    tier: int
    tokens_per_byte: float
    victim: Victim


@dataclass(slots=True, eq=False)
class _Reuse:
    """The figures of a resume point that cannot be read off its node."""

    above: KvNode | None  # the nearest resume point above
    gap: int  # tokens from there to here: those to feed again without this point
    chance: float  # likelihood that a request resumes here


class _Offers:
    """Victims in order of cost, at most one of each node and parked cache."""

    def __init__(self) -> None:
        # (tier, tokens per byte, number of the offer). An outdated offer stays here as a bare number,
        # so that nothing evicted is referenced.
        self._heap: list[tuple[int, float, int]] = []
        self._victims: dict[int, Victim] = {}  # by number, those of offers that hold
        self._numbers: dict[KvNode | HotCache, int] = {}
        self._num_offers = 0

    def replace(self, item: KvNode | HotCache, offer: _Offer | None) -> None:
        """Put an offer in place of the earlier one of an item."""
        outdated = self._numbers.pop(item, None)
        if outdated is not None:
            del self._victims[outdated]
        if offer is not None:
            tier, tokens_per_byte, victim = offer
            self._numbers[item] = number = self._num_offers
            self._num_offers += 1
            self._victims[number] = victim
            heappush(self._heap, (tier, tokens_per_byte, number))

    def pop_cheapest(self) -> Victim | None:
        """Return the victim of the cheapest offer, None if no offer is left."""
        while self._heap:
            *_, number = heappop(self._heap)
            if number in self._victims:
                return self._victims[number]
        return None


class CoverageRanking:
    """The default eviction order: a heap of offers, scored again around each eviction."""

    def __init__(self, holdings: Holdings) -> None:
        self._holdings = holdings
        self._points: dict[KvNode, _Reuse] = {}
        # The nodes that lie in each parked cache, parents first.
        self._lent: dict[HotCache, list[KvNode]] = {hot: [] for hot in holdings.parked.values()}
        self._offers = _Offers()
        nodes = list(holdings.tree.nodes())
        self._find_points(nodes)
        for node in reversed(nodes):
            self._offers.replace(node, self._score_node(node))
        for hot in self._lent:
            self._offers.replace(hot, self._score_hot(hot))

    def next_victim(self) -> Victim | None:
        """Return what saves the fewest tokens per byte, None if nothing is left."""
        return self._offers.pop_cheapest()

    def update(self, evicted: Evicted) -> None:
        """Score again what an eviction changed."""
        rescored: list[KvNode] = []
        for node in evicted.removed:
            rescored += self._retire(node)
            self._offers.replace(node, None)
        for node in evicted.changed:
            if not self._holdings.is_resume_point(node):
                rescored += self._retire(node)
        if isinstance(evicted.victim, EvictHot):
            self._retire_hot(evicted.victim.hot)
        for node in dict.fromkeys((*rescored, *evicted.changed)):
            self._offers.replace(node, self._score_node(node))
        if isinstance(evicted.victim, EvictLogits):
            return  # logits do not change a parked cache's score
        for hot in dict.fromkeys(map(lender, evicted.changed)):
            if hot in self._lent:
                self._offers.replace(hot, self._score_hot(hot))

    # Chances

    def _find_points(self, nodes: Sequence[KvNode]) -> None:
        """Find the resume point above each node, top-down; add up chances, bottom-up."""
        points, reuse = self._points, dict[KvNode, _Reuse]()
        for node in nodes:
            above, gap = node.parent, 0
            if above is not None and above not in points:
                above, gap = reuse[above].above, reuse[above].gap
            reuse[node] = _Reuse(above, gap + len(node.token_ids), self._own_chance(node))
            if self._holdings.is_resume_point(node):
                points[node] = reuse[node]
            hot = lender(node)
            if hot in self._lent:
                self._lent[hot].append(node)
        before_later: set[KvNode] = set()
        for node in reversed(nodes):
            parent, snapshot = node.parent, node.snapshot
            is_before_later = node in before_later
            if is_before_later:
                reuse[node].chance *= _BEFORE_LATER
            if parent is None:
                continue
            if node not in points:
                reuse[parent].chance += reuse[node].chance
            if is_before_later or (snapshot is not None and snapshot.kind in _MESSAGES):
                before_later.add(parent)

    def _own_chance(self, node: KvNode) -> float:
        """Return the likelihood that a request resumes at a node, those below it left out."""
        chance = len(node.users) * self._recency(node)
        if self._holdings.needs_snapshot:
            chance *= LIKELIHOOD[node.snapshot.kind] if node.snapshot else _NO_POINT
        return chance

    def _recency(self, node: KvNode) -> float:
        return _HALF_LIFE / (self._holdings.clock - node.last_used + _HALF_LIFE)

    def _retire(self, node: KvNode) -> list[KvNode]:
        """Pass the chance of a former resume point on to the point above.

        Returns:
            The resume points whose scores this changed; none if the node was no resume point.
        """
        retired = self._points.pop(node, None)
        if retired is None:
            return []
        changed = list(self._points_below(node))
        for below in changed:
            reuse = self._points[below]
            reuse.above, reuse.gap = retired.above, reuse.gap + retired.gap
        if retired.above is not None:
            self._points[retired.above].chance += retired.chance
            changed.append(retired.above)
        return changed

    def _points_below(self, node: KvNode) -> Iterator[KvNode]:
        """Yield the resume points that have no other one between them and a node."""
        pending = [node]
        while pending:
            for child in pending.pop().children.values():
                if child in self._points:
                    yield child
                else:
                    pending.append(child)

    # Scores

    def _score_node(self, node: KvNode) -> _Offer | None:
        """Return the cheapest offer of what can be evicted of a node now."""
        if node.lock_count:
            return None
        offer, redraw = None, 0.0
        snapshot, point = node.snapshot, self._points.get(node)
        tier, gap = self._tier(node), point.gap if point is not None else 0
        is_hybrid = self._holdings.needs_snapshot
        if snapshot is not None and snapshot.logits is not None:
            redraw = len(node.users) * self._recency(node) ** 2 * _REDRAW
            # Without them a hybrid resumes at the point above, others feed the last token again.
            tokens = redraw * (gap if is_hybrid else 1)
            offer = _Offer(tier, tokens / snapshot.logits.nbytes, EvictLogits(node))
        num_bytes = snapshot.nbytes if snapshot is not None else 0
        is_leaf = not node.children and lender(node) is None
        if is_leaf:
            num_bytes += sum([gone.span.nbytes for gone in self._holdings.removed_with(node)])
        if num_bytes and (is_leaf or is_hybrid):
            tokens_per_byte = (
                (point.chance + redraw) * gap / num_bytes if point is not None else 0.0
            )
            if offer is None or tokens_per_byte < offer.tokens_per_byte:
                is_snapshot = is_hybrid and point is not None
                victim = EvictSnapshot(node) if is_snapshot else EvictNode(node)
                return _Offer(tier, tokens_per_byte, victim)
        return offer

    def _score_hot(self, hot: HotCache) -> _Offer:
        """Offer a parked cache for its spare room and the dead ends in it."""
        holdings = self._holdings
        tier = _PINNED if hot.conversation_id in holdings.pinned else 0
        kept = holdings.useful_nodes(self._lent[hot])
        num_moved = sum(len(node.token_ids) for node in kept)
        num_bytes = max(1, hot.nbytes - num_moved * holdings.kv_bytes_per_token)
        tokens_per_byte = num_moved * _MOVE_COST / num_bytes
        leaf = kept[-1] if kept and not holdings.needs_snapshot else None
        if leaf is not None and not leaf.children and self._tier(leaf) == tier:
            # Without snapshots a lent leaf can only be evicted after its cache: offer the cache at the
            # leaf's score if that is lower.
            point, num_bytes = self._points[leaf], len(leaf.token_ids) * holdings.kv_bytes_per_token
            tokens_per_byte = min(tokens_per_byte, point.chance * point.gap / num_bytes)
        return _Offer(tier, tokens_per_byte, EvictHot(hot))

    def _tier(self, node: KvNode) -> int:
        snapshot, pinned = node.snapshot, self._holdings.pinned
        is_system = snapshot is not None and snapshot.kind is PointKind.SYSTEM
        if is_system and len(node.users) > 1 and node.end >= _SYSTEM_LEN:
            return _SYSTEM
        return _PINNED if pinned and not pinned.isdisjoint(node.users) else 0

    def _retire_hot(self, hot: HotCache) -> None:
        """Note which caches hold the nodes of a parked cache, now that it is evicted."""
        self._offers.replace(hot, None)
        for node in self._lent.pop(hot):
            other = None if node.is_removed else lender(node)
            if other is not None:
                self._lent[other].append(node)
                self._lent[other].sort(key=lambda node: node.start)
