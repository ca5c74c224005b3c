"""The default eviction order: evict first the state that saves the fewest tokens per byte.

When the byte budget is exceeded, eviction.py creates a CoverageRanking, and evicts its victims one
by one until enough bytes are free. After each eviction, the ranking is updated. Then it is dropped.

A resume point is the end of a node at which a request can start. If the model has auxiliary state,
the node must have a snapshot. Otherwise the end of every node is a resume point. A resume point
covers its gap: the tokens between the nearest resume point above and the point itself. If the point
is evicted, these tokens must be fed again.

    chance   likelihood that a request resumes at the point
    value    gap times chance: the number of tokens that the point is expected to save

When a resume point is evicted, its requests resume at the next point above. The chance of the point
above grows, and the gaps of the points below grow. Therefore these points are scored again.

State of pinned conversations is evicted after all other state. If the model has auxiliary state,
the snapshots at the ends of shared system prompts are evicted last. Without auxiliary state there
are no such snapshots: a shared prompt stays stored while the tree has nodes below it, because only
leaves are evicted.
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
# Factor for a node without a snapshot, if the model needs snapshots. No request can resume at its
# end, so its chance is small, and is added to the resume point above.
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
    """A victim and its rank. An offer is replaced when the score of its node or cache changes.

    The lowest tier is evicted first. Within a tier, the fewest tokens per byte are evicted first.
    """

    tier: int
    tokens_per_byte: float  # expected number of tokens to feed again, per byte freed
    victim: Victim


@dataclass(slots=True, eq=False)
class _Reuse:
    """Ranking data of a node, in addition to the data in the node itself.

    The ranking first computes it for all nodes, and then keeps it for the resume points only.
    """

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
        """Remove the lowest offer from the heap and return its victim. None if no offer is left.

        Offers that were replaced are skipped.
        """
        while self._heap:
            *_, number = heappop(self._heap)
            if number in self._victims:
                return self._victims[number]
        return None


class CoverageRanking:
    """Eviction order by saved tokens per byte.

    The offers are kept in a heap. After an eviction, the affected offers are scored again. An
    instance describes the contents of the cache at its creation and the reported evictions. It is
    invalid once a request changes the cache.
    """

    def __init__(self, holdings: Holdings) -> None:
        """Score all nodes and all parked caches."""
        self._holdings = holdings
        self._points: dict[KvNode, _Reuse] = {}  # key: node that ends at a resume point
        # For each parked cache: the nodes whose K/V lies in it, parents first.
        self._lent: dict[HotCache, list[KvNode]] = {hot: [] for hot in holdings.parked.values()}
        self._offers = _Offers()
        nodes = list(holdings.tree.nodes())
        self._find_points(nodes)
        # Children before parents: of two offers with the same score, the older one is evicted
        # first.
        for node in reversed(nodes):
            self._offers.replace(node, self._score_node(node))
        for hot in self._lent:
            self._offers.replace(hot, self._score_hot(hot))

    def next_victim(self) -> Victim | None:
        """Return the victim with the lowest rank. The caller must evict it and call update."""
        return self._offers.pop_cheapest()

    def update(self, evicted: Evicted) -> None:
        """Rescore the nodes and parked caches that an eviction affected."""
        rescored: list[KvNode] = []  # resume points with a changed gap or chance
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
        # Nodes with a later message below them. Their chance is halved. If a node is no resume
        # point, its halved chance is added to its parent, and may be halved there again. Later
        # evictions do not change this: the factor is computed only when a ranking is created.
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
        """Return the likelihood that a request resumes at a node itself, not at a node below it.

        The value is relative: it grows with the number of conversations that contain the node
        (node.users) and falls with the number of turns since the node was last used.
        """
        chance = len(node.users) * self._recency(node)
        if self._holdings.needs_snapshot:
            chance *= LIKELIHOOD[node.snapshot.kind] if node.snapshot else _NO_POINT
        return chance

    def _recency(self, node: KvNode) -> float:
        """Return 1 for a node used in this turn, 0.5 after _HALF_LIFE turns without a use."""
        return _HALF_LIFE / (self._holdings.clock - node.last_used + _HALF_LIFE)

    def _retire(self, node: KvNode) -> list[KvNode]:
        """Remove a node from the table of resume points.

        The nearest resume point above it takes over its chance of being used again.

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

        If the model needs snapshots, the snapshot of any node can be evicted. Otherwise only a leaf
        that owns its K/V can be evicted, with K/V and snapshot, and any node can lose its logits.

        Returns:
            None if no part of the node can be evicted now.
        """
        if node.lock_count:
            return None
        offer, redraw = None, 0.0
        snapshot, point = node.snapshot, self._points.get(node)
        tier, gap = self._tier(node), point.gap if point is not None else 0
        needs_snapshot = self._holdings.needs_snapshot
        if snapshot is not None and snapshot.logits is not None:
            redraw = len(node.users) * self._recency(node) ** 2 * _REDRAW
            # Without the logits, a model that needs snapshots resumes at the point above. Any other
            # model only feeds the last token again.
            tokens = redraw * (gap if needs_snapshot else 1)
            offer = _Offer(tier, tokens / snapshot.logits.nbytes, EvictLogits(node))
        num_bytes = snapshot.nbytes if snapshot is not None else 0
        is_leaf = not node.children and lender(node) is None
        if is_leaf:
            # A leaf that owns its K/V is removed together with its snapshot. Count both.
            num_bytes += sum([gone.span.nbytes for gone in self._holdings.removed_with(node)])
        if num_bytes and (is_leaf or needs_snapshot):
            tokens_per_byte = (
                (point.chance + redraw) * gap / num_bytes if point is not None else 0.0
            )
            if offer is None or tokens_per_byte < offer.tokens_per_byte:
                is_snapshot = needs_snapshot and point is not None
                victim = EvictSnapshot(node) if is_snapshot else EvictNode(node)
                return _Offer(tier, tokens_per_byte, victim)
        return offer

    def _score_hot(self, hot: HotCache) -> _Offer:
        """Return an offer to evict a parked cache. This frees unused capacity and dead ends.

        The cost is copying the K/V of the useful nodes out of the cache, and back to a cache later.
        """
        holdings = self._holdings
        tier = _PINNED if hot.conversation_id in holdings.pinned else 0
        kept = holdings.useful_nodes(self._lent[hot])
        num_moved = sum(len(node.token_ids) for node in kept)
        num_bytes = max(1, hot.nbytes - num_moved * holdings.kv_bytes_per_token)
        tokens_per_byte = num_moved * _MOVE_COST / num_bytes
        leaf = kept[-1] if kept and not holdings.needs_snapshot else None
        if leaf is not None and not leaf.children and self._tier(leaf) == tier:
            # This branch is for models that need no snapshots, so every node is in _points. A leaf
            # whose K/V lies in a parked cache cannot be evicted before the cache. If the leaf has a
            # lower score than the cache, offer the cache at the score of the leaf.
            point, num_bytes = self._points[leaf], len(leaf.token_ids) * holdings.kv_bytes_per_token
            tokens_per_byte = min(tokens_per_byte, point.chance * point.gap / num_bytes)
        return _Offer(tier, tokens_per_byte, EvictHot(hot))

    def _tier(self, node: KvNode) -> int:
        """Return the tier of a node: _SYSTEM, _PINNED or 0."""
        snapshot, pinned = node.snapshot, self._holdings.pinned
        is_system = snapshot is not None and snapshot.kind is PointKind.SYSTEM
        if is_system and len(node.users) > 1 and node.end >= _SYSTEM_LEN:
            return _SYSTEM
        return _PINNED if pinned and not pinned.isdisjoint(node.users) else 0

    def _retire_hot(self, hot: HotCache) -> None:
        """Remove an evicted cache. List its nodes under the caches that they now reference.

        A node references another parked cache if that cache holds the same tokens. All other nodes
        of the evicted cache were removed, or own a copy of their K/V.
        """
        self._offers.replace(hot, None)
        for node in self._lent.pop(hot):
            other = None if node.is_removed else lender(node)
            if other is not None:
                self._lent[other].append(node)
                self._lent[other].sort(key=lambda node: node.start)
