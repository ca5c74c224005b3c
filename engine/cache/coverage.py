"""What is given up first: what saves the fewest tokens per byte. Decides only; prefix_cache.py acts.

A point is worth the tokens that would be fed again without it, from the next point above, times how
likely a request goes on from there. A point that goes leaves its requests to the point above and a
longer way to the points below, so those are ranked anew. What is pinned goes after all else, and
system prompts that conversations share after that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import NamedTuple

from engine.cache.budget import (
    LIKELIHOOD,
    DropLogits,
    DropNode,
    DropSnapshot,
    GiveUpHot,
    Holdings,
    Victim,
)
from engine.cache.hot import HotCache, KvNode, LentSpan, is_point
from engine.chat.prompt import PointKind

# A point before a later message: an edit goes on from there, the next message does not.
_BEFORE_LATER = 0.5
# A place that has no point: somebody may ask for it all the same.
_NO_POINT = 0.05
# Another reply to a prompt, which its logits save a pass: soon or not at all.
_REDRAW = 0.1
# Turns after which what was just used is half as likely to be asked for.
_HALF_LIFE = 8
# To move a token's K/V out of a hot cache and back, in tokens fed.
_MOVE_COST = 1e-3
# A shorter system prompt is cheaper to read than to keep a point for before all others.
_SYSTEM_LEN = 64

_MESSAGES = (PointKind.TURN, PointKind.TAIL)
_PINNED, _SYSTEM = 1, 2


def coverage_aware(holdings: Holdings) -> Iterator[Victim]:
    """The default policy; see the module."""
    return _Ranking(holdings).victims()


class _Place:
    """A node as it is once the victims named so far are given up."""

    __slots__ = (
        "above",
        "asked",
        "comes_before",
        "end",
        "is_gone",
        "is_locked",
        "is_point",
        "lender",
        "logits_bytes",
        "node",
        "num_children",
        "owned_bytes",
        "parent",
        "redrawn",
        "snapshot_bytes",
        "tier",
        "version",
    )

    def __init__(self, node: KvNode, parent: _Place | None, *, is_point: bool) -> None:
        self.node = node
        self.parent = parent
        # Kept here, for all of a large tree is looked at every time.
        self.end = node.run.start + len(node.run.token_ids)
        self.num_children = len(node.children)
        self.is_locked = node.lock_count > 0
        self.is_point = is_point
        # The nearest point above; kept up to date for points only.
        self.above = parent if parent is None or parent.is_point else parent.above
        self.comes_before = False  # a later message follows
        self.asked = 0.0  # how likely a request goes on from here
        self.redrawn = 0.0  # and how likely from the logits
        self.snapshot_bytes = 0  # with the logits
        self.logits_bytes = 0
        self.owned_bytes: int | None = None  # of the K/V; None: lent
        self.lender: _Lender | None = None
        self.tier = 0
        self.version = 0
        self.is_gone = False

    @property
    def gap(self) -> int:
        """Tokens from the point above to here."""
        return self.end - self.above.end if self.above is not None else self.end

    @property
    def is_dead_end(self) -> bool:
        """Whether nothing can be restored from here or below."""
        return not (self.is_point or self.num_children or self.is_locked)

    @property
    def is_useless(self) -> bool:
        return self.is_dead_end and self.owned_bytes is not None


@dataclass(slots=True, eq=False)
class _Lender:
    """A parked cache and the places that borrow from it, parents first."""

    hot: HotCache
    tier: int
    places: list[_Place] = field(default_factory=list[_Place])
    version: int = 0


class _Offer(NamedTuple):
    """Something to give up and what it costs; the cheapest goes first, an outdated one is passed over."""

    tier: int
    tokens_per_byte: float
    number: int
    version: int
    item: _Place | _Lender
    is_logits: bool


class _Ranking:
    """All that can be given up, in order of cost; ranked once, then only around what went."""

    def __init__(self, holdings: Holdings) -> None:
        self._holdings = holdings
        self._offers: list[_Offer] = []
        self._num_offers = 0
        self._lenders = {
            id(hot): _Lender(hot, _PINNED if hot.conversation_id in holdings.pinned else 0)
            for hot in holdings.parked
        }
        self._places: dict[KvNode, _Place] = {}
        for node in holdings.nodes:
            self._places[node] = self._place(node)
        for place in reversed(self._places.values()):
            self._look_up(place)
            self._offer(place)
        for lender in self._lenders.values():
            self._offer_lender(lender)

    def victims(self) -> Iterator[Victim]:
        """What goes next; the one before has been given up by the time that it is asked for."""
        try:
            while self._offers:
                offer = heappop(self._offers)
                if offer.version == offer.item.version:
                    yield from self._take(offer)
        finally:
            # Places and lenders name each other: what was given up would stay until a collection.
            self._lenders.clear()
            for place in self._places.values():
                place.lender = None

    def _take(self, offer: _Offer) -> Iterator[Victim]:
        item = offer.item
        if isinstance(item, _Lender):
            yield GiveUpHot(item.hot)
            self._after_moving(item)
        elif offer.is_logits:
            yield DropLogits(item.node)
            item.snapshot_bytes -= item.logits_bytes
            item.logits_bytes, item.redrawn = 0, 0.0
            self._offer(item)
        else:
            is_whole = not (item.is_point and self._holdings.needs_snapshot)
            yield DropNode(item.node) if is_whole else DropSnapshot(item.node)
            self._after_dropping(item)

    # Ranking

    def _place(self, node: KvNode) -> _Place:
        holdings, snapshot = self._holdings, node.snapshot
        parent = self._places[node.parent] if node.parent else None
        place = _Place(
            node, parent, is_point=is_point(node, needs_snapshot=holdings.needs_snapshot)
        )
        self._find_span(place)
        num_users = len(node.users)
        recency = _HALF_LIFE / (holdings.now - node.last_used + _HALF_LIFE)
        chance = num_users * recency
        place.asked = chance
        if holdings.needs_snapshot:
            place.asked *= LIKELIHOOD[snapshot.kind] if snapshot else _NO_POINT
        if holdings.pinned and not holdings.pinned.isdisjoint(node.users):
            place.tier = _PINNED
        if snapshot is not None:
            place.snapshot_bytes = snapshot.nbytes
            if snapshot.logits is not None:
                place.logits_bytes = snapshot.logits.nbytes
                place.redrawn = chance * recency * _REDRAW
            if snapshot.kind is PointKind.SYSTEM and num_users > 1 and place.end >= _SYSTEM_LEN:
                place.tier = _SYSTEM
        return place

    def _look_up(self, place: _Place) -> None:
        """What a place means to those above; all below it have been here."""
        parent, snapshot = place.parent, place.node.snapshot
        if place.comes_before:
            place.asked *= _BEFORE_LATER
        if parent is None:
            return
        if place.comes_before or (snapshot is not None and snapshot.kind in _MESSAGES):
            parent.comes_before = True
        if not place.is_point:
            parent.asked += place.asked

    def _find_span(self, place: _Place) -> None:
        """Where the K/V lies: in arrays of its own, or in whose cache."""
        span = place.node.span
        if isinstance(span, LentSpan):
            place.lender = self._lenders.get(id(span.hot))
            if place.lender is not None:
                place.lender.places.append(place)
        else:
            place.owned_bytes, place.lender = span.nbytes, None

    def _offer(self, place: _Place) -> None:
        """What can be given up here now; earlier offers no longer count."""
        place.version += 1
        if place.is_gone or place.is_locked:
            return
        is_hybrid = self._holdings.needs_snapshot
        gap = place.gap if place.is_point else 0
        if place.logits_bytes:
            # Without them a hybrid goes on from the point above, others feed the last token again.
            tokens = place.redrawn * (gap if is_hybrid else 1)
            self._push(place, tokens, place.logits_bytes, is_logits=True)
        freed = place.snapshot_bytes if is_hybrid else 0
        if not place.num_children and place.owned_bytes is not None:
            freed = place.snapshot_bytes + _owned_up_from(place)
        if freed:
            self._push(place, (place.asked + place.redrawn) * gap, freed)

    def _offer_lender(self, lender: _Lender) -> None:
        """What giving up a parked cache frees now: its spare room and what the tree has no use for."""
        lender.version += 1
        kept = _of_use(lender.places)
        num_moved = sum(len(place.node.token_ids) for place in kept)
        per_token = self._holdings.kv_bytes_per_token
        freed = max(1, lender.hot.nbytes - num_moved * per_token)
        self._push(lender, num_moved * _MOVE_COST, freed)
        last = kept[-1] if kept and not self._holdings.needs_snapshot else None
        if last is not None and not last.num_children and last.tier == lender.tier:
            # Where K/V is all there is, a lent leaf can only go after its cache: when its turn comes.
            self._push(lender, last.asked * last.gap, len(last.node.token_ids) * per_token)

    def _push(
        self, item: _Place | _Lender, tokens: float, nbytes: int, *, is_logits: bool = False
    ) -> None:
        self._num_offers += 1
        cost = tokens / nbytes
        heappush(
            self._offers,
            _Offer(item.tier, cost, self._num_offers, item.version, item, is_logits),
        )

    # What giving up changes

    def _after_dropping(self, place: _Place) -> None:
        above = place.above
        if place.is_point:
            place.is_point = False
            place.snapshot_bytes = place.logits_bytes = 0
            for below in self._points_below(place):
                below.above = above
                self._offer(below)
            if above is not None:
                above.asked += place.asked
                self._offer(above)
        while place.is_useless:
            self._remove(place)
            if place.parent is None:
                return
            place = place.parent
        self._offer(place)
        if place.lender is not None:
            self._offer_lender(place.lender)

    def _after_moving(self, lender: _Lender) -> None:
        lender.version += 1
        for place in reversed(lender.places):
            if place.is_dead_end and not place.is_gone:
                self._remove(place)
                if place.parent is not None:
                    self._offer(place.parent)
        others: dict[int, _Lender] = {}
        for place in [place for place in lender.places if not place.is_gone]:
            self._find_span(place)
            self._offer(place)
            if place.lender is not None:
                others[id(place.lender)] = place.lender
        for other in others.values():
            other.places.sort(key=lambda place: place.node.start)
            self._offer_lender(other)

    def _remove(self, place: _Place) -> None:
        place.is_gone = True
        place.version += 1
        if place.parent is not None:
            place.parent.num_children -= 1

    def _points_below(self, place: _Place) -> Iterator[_Place]:
        pending = [place]
        while pending:
            for child in pending.pop().node.children.values():
                below = self._places[child]
                if below.is_point:
                    yield below
                elif not below.is_gone:
                    pending.append(below)


def _owned_up_from(place: _Place) -> int:
    """Bytes of the K/V that goes with a leaf: its own and what leads nowhere else."""
    nbytes = 0
    while place.owned_bytes is not None:
        nbytes += place.owned_bytes
        parent = place.parent
        if parent is None or parent.is_point or parent.num_children > 1 or parent.is_locked:
            break
        place = parent
    return nbytes


def _of_use(places: Sequence[_Place]) -> list[_Place]:
    """Those that something can still be restored from, or below; parents first."""
    kept: list[_Place] = []
    num_dead = Counter[int]()  # of a place's children
    for place in reversed(places):
        if place.is_gone:
            continue
        if place.is_point or place.is_locked or place.num_children > num_dead[id(place)]:
            kept.append(place)
        else:
            num_dead[id(place.parent)] += 1
    return kept[::-1]
