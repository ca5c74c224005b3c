"""The default eviction order: evict first the state that saves the fewest tokens per byte.

The value of a resume point is its gap times its chance. The gap is the number of tokens between the
nearest resume point above and the point itself. The chance is the likelihood that a request resumes
at the point. When a resume point is evicted, its requests resume at the next point above. The
chance of the point above grows, and the gaps of the points below grow. Therefore these points are
scored again.

State of pinned conversations is evicted after all other state. System prompts that several
conversations share are evicted last.

When the byte budget is exceeded, eviction.py creates a CoverageRanking, and evicts its victims one
by one until enough bytes are free. After each eviction, the ranking is updated.
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

# Factor for a resume point that has later messages after it. The next message resumes at a later
# point, so this point is used only after an edit.
_BEFORE_LATER = 0.5
# Factor for a node without a resume point: a request may still reuse its K/V.
_NO_POINT = 0.05
# Weight of the logits kept at a prompt's end. They save one forward pass when the reply is
# regenerated. A user regenerates soon or never, so the weight is multiplied by the square of the
# recency.
_REDRAW = 0.1
# Number of turns after which a node is half as likely to be used again.
_HALF_LIFE = 8
# Cost of copying the K/V of one token out of a hot cache and back, as a fraction of the cost of
# feeding the token.
_MOVE_COST = 1e-3
# Minimum length in tokens of a system prompt that is evicted last. Feeding a shorter one again
# costs less than keeping its snapshot.
_SYSTEM_LEN = 64

# Kinds of resume points that lie between two messages.
_MESSAGES = (PointKind.TURN, PointKind.TAIL)
# Tiers of eviction for pinned conversations and shared system prompts. Tier 0 (all other state) is
# evicted first.
_PINNED, _SYSTEM = 1, 2


class _Offer(NamedTuple):
    """A victim and its rank.

    The lowest tier is evicted first. Within a tier, the fewest tokens per byte are evicted first.
    """

    tier: int
    tokens_per_byte: float  # expected number of tokens to feed again, per byte freed
    victim: Victim


@dataclass(slots=True, eq=False)
class _Reuse:
    """Ranking data of a resume point, in addition to the data in its node."""

    above: KvNode | None  # nearest resume point among the ancestors; None if there is none
    gap: int  # number of tokens from `above` to this point; fed again if this point is evicted
    chance: float  # relative likelihood that a request resumes at this point


class _Offers:
    """A priority queue of victims, with at most one offer for each node and parked cache."""

    def __init__(self) -> None:
        # Entries (tier, tokens per byte, offer number). The heap contains no victims, because an
        # outdated entry would keep evicted arrays in memory.
        self._heap: list[tuple[int, float, int]] = []
        # Key: offer number. Value: victim. Outdated offers have no entry.
        self._victims: dict[int, Victim] = {}
        # Key: node or parked cache. Value: number of its current offer.
        self._numbers: dict[KvNode | HotCache, int] = {}
        self._num_offers = 0

    def replace(self, item: KvNode | HotCache, offer: _Offer | None) -> None:
        """Replace the offer for a node or a parked cache. None only removes the old offer."""
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
        while self._heap:
            *_, number = heappop(self._heap)
            if number in self._victims:
                return self._victims[number]
        return None


class CoverageRanking:
    """Eviction order by saved tokens per byte.

    The offers are kept in a heap. After an eviction, the affected offers are scored again.
    """

    def __init__(self, holdings: Holdings) -> None:
        self._holdings = holdings
        self._points: dict[KvNode, _Reuse] = {}
        # For each parked cache: the nodes whose K/V lies in it, parents first.
        self._lent: dict[HotCache, list[KvNode]] = {hot: [] for hot in holdings.parked.values()}
        self._offers = _Offers()
        nodes = list(holdings.tree.nodes())
        self._find_points(nodes)
        for node in reversed(nodes):
            self._offers.replace(node, self._score_node(node))
        for hot in self._lent:
            self._offers.replace(hot, self._score_hot(hot))

    def next_victim(self) -> Victim | None:
        return self._offers.pop_cheapest()

    def update(self, evicted: Evicted) -> None:
        """Rescore the nodes and parked caches that an eviction affected."""
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
            return  # the score of a parked cache does not depend on logits
        for hot in dict.fromkeys(map(lender, evicted.changed)):
            if hot in self._lent:
                self._offers.replace(hot, self._score_hot(hot))

    # Gaps and chances of resume points

    def _find_points(self, nodes: Sequence[KvNode]) -> None:
        """Find all resume points, their gaps and chances, and the nodes in each parked cache.

        The gaps are computed top-down. The chances are summed bottom-up: a node without a resume
        point adds its chance to its parent.
        """
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
        """Return the likelihood that a request resumes at a node itself, not at a node below it."""
        chance = len(node.users) * self._recency(node)
        if self._holdings.needs_snapshot:
            chance *= LIKELIHOOD[node.snapshot.kind] if node.snapshot else _NO_POINT
        return chance

    def _recency(self, node: KvNode) -> float:
        return _HALF_LIFE / (self._holdings.clock - node.last_used + _HALF_LIFE)

    def _retire(self, node: KvNode) -> list[KvNode]:
        """Remove a former resume point, and add its chance to the point above.

        Returns:
            The resume points with a changed gap or chance. Empty if the node was no resume point.
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
        """Yield the nearest resume point on each path below a node."""
        pending = [node]
        while pending:
            for child in pending.pop().children.values():
                if child in self._points:
                    yield child
                else:
                    pending.append(child)

    # Scores of nodes and parked caches

    def _score_node(self, node: KvNode) -> _Offer | None:
        """Return the cheapest offer to evict the logits of a node, its snapshot, or the whole node.

        None if no part of the node can be evicted now.
        """
        if node.lock_count:
            return None
        offer, redraw = None, 0.0
        snapshot, point = node.snapshot, self._points.get(node)
        tier, gap = self._tier(node), point.gap if point is not None else 0
        is_hybrid = self._holdings.needs_snapshot
        if snapshot is not None and snapshot.logits is not None:
            redraw = len(node.users) * self._recency(node) ** 2 * _REDRAW
            # Without the logits, a hybrid model resumes at the point above. Any other model only
            # feeds the last token again.
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
        """Return an offer to evict a parked cache. This frees unused capacity and dead ends."""
        holdings = self._holdings
        tier = _PINNED if hot.conversation_id in holdings.pinned else 0
        kept = holdings.useful_nodes(self._lent[hot])
        num_moved = sum(len(node.token_ids) for node in kept)
        num_bytes = max(1, hot.nbytes - num_moved * holdings.kv_bytes_per_token)
        tokens_per_byte = num_moved * _MOVE_COST / num_bytes
        leaf = kept[-1] if kept and not holdings.needs_snapshot else None
        if leaf is not None and not leaf.children and self._tier(leaf) == tier:
            # This branch is for models without snapshots. A leaf whose K/V lies in a parked cache
            # cannot be evicted before the cache. If the leaf has a lower score than the cache,
            # offer the cache at the score of the leaf.
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
        """Remove an evicted cache. List its nodes under the caches that they now reference."""
        self._offers.replace(hot, None)
        for node in self._lent.pop(hot):
            other = None if node.is_removed else lender(node)
            if other is not None:
                self._lent[other].append(node)
                self._lent[other].sort(key=lambda node: node.start)
