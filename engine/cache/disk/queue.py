"""The queue of resume points that are written to disk. Engine thread only.

Each turn leaves new states, and a state of a recurrent model is as large as the K/V of more than a
thousand tokens. So the points of a conversation wait until it has rested. They are written earlier
if they are evicted, or at closing. The newest point of a branch does not wait if it saves as many
bytes of K/V as its state has, or if its tokens took COSTLY_S to read.

The queue refers to nodes weakly, so that a node that is evicted or forgotten frees its memory at
once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from weakref import ReferenceType, WeakKeyDictionary, ref

from engine.cache.disk.index import Index
from engine.cache.disk.rates import Rates
from engine.cache.holdings import Holdings
from engine.cache.hot import KvNode
from engine.cache.layout import Layout
from engine.cache.points import PointKind
from engine.cache.prefix_cache import PrefixCache
from engine.cache.radix import ancestry, path_run
from engine.cache.shares import ending_at

# Resume points that are kept on disk, counted from the end of the branch: of the branch that a
# conversation used last, and of its other branches.
_NUM_POINTS, _NUM_OTHER_POINTS = 4, 1
# Ends of prompts of one branch that are kept on disk with their logits. A reply that was cut off
# has such a point at its end too, so that it can be continued.
_NUM_PROMPTS = 2
# Seconds of reading after which a state does not wait, so that a crash loses less. The daily limit
# of 40 GB has room for 260 states of the largest known size, 147 MiB.
COSTLY_S = 5.0


class PointQueue:
    """Resume points in memory that may not be on disk yet."""

    def __init__(
        self,
        cache: PrefixCache,
        layout: Layout,
        index: Index,
        rates: Rates,
        rest_s: float,
        clock: Callable[[], float],
    ) -> None:
        """Create a queue.

        Args:
            cache: the prefix cache with the points.
            layout: the bytes per token and per snapshot of the model.
            index: the records on disk.
            rates: the learned seconds per token of reading.
            rest_s: seconds since the last turn of a conversation after which its points are
            written.
            clock: function that returns the Unix time.
        """
        self._cache = cache
        self._layout = layout
        self._index = index
        self._rates = rates
        self._rest_s = rest_s
        self._clock = clock
        # The last node of each branch, with its newest point if this does not wait.
        self._ends = WeakKeyDictionary[KvNode, ReferenceType[KvNode] | None]()
        self._last_turn: dict[str, float] = {}  # Unix time by conversation
        # Times from which the points may be written. The most valuable point is the last one.
        self._due = WeakKeyDictionary[KvNode, float]()
        self._next_due = math.inf  # no point may be written before
        self._seen = -1  # number of publications when the points were chosen

    @property
    def has_due(self) -> bool:
        """True if a point may be written, as far as is known without a new choice."""
        return self._is_old or self._next_due <= self._clock()

    @property
    def due_in_s(self) -> float:
        """Seconds until a point may be written, as far as is known; infinite if none waits."""
        return 0.0 if self._is_old else max(0.0, self._next_due - self._clock())

    def due(self) -> list[KvNode]:
        """Return the points that may be written now, the most valuable one first."""
        self._refresh()
        now = self._clock()
        found = [node for node, due in reversed(list(self._due.items())) if due <= now]
        if not found:
            self._next_due = min(self._due.values(), default=math.inf)
        return found

    def __contains__(self, node: KvNode) -> bool:
        self._refresh()
        return node in self._due

    def remove(self, node: KvNode) -> None:
        """Remove a point that is on disk, or that will not be written."""
        self._due.pop(node, None)

    def clear(self) -> None:
        """Remove all points. The next turn chooses again."""
        self._due.clear()
        self._next_due = math.inf

    def end_rest(self) -> None:
        """Let no point wait from now on."""
        self._rest_s, self._seen = 0.0, -1

    @property
    def _is_old(self) -> bool:
        return self._seen != self._cache.holdings.counters.publications

    def _refresh(self) -> None:
        """Choose the points again, if turns were added since."""
        if not self._is_old:
            return
        holdings, now = self._cache.holdings, self._clock()
        self._seen = holdings.counters.publications
        ends = [node for node in holdings.tree.nodes() if not node.children]
        for end in ends:
            if end not in self._ends:
                self._last_turn |= dict.fromkeys(end.users, now)
        self._ends = WeakKeyDictionary(
            {end: self._ends[end] if end in self._ends else self._urgent(end) for end in ends}
        )
        latest: dict[str, int] = {}
        for end in ends:
            for user in end.users:
                latest[user] = max(latest.get(user, 0), end.last_used)
        self._last_turn = {user: self._last_turn.get(user, now) for user in latest}
        due: dict[KvNode, float] = {}
        for end, urgent in self._ends.items():
            turns = [self._last_turn[user] for user in end.users]
            rested = min(turns, default=now) + self._rest_s
            is_latest = any(latest[user] == end.last_used for user in end.users)
            num_points = _NUM_POINTS if is_latest else _NUM_OTHER_POINTS
            for node in _last_points(holdings, end, num_points):
                is_urgent = urgent is not None and urgent() is node
                due[node] = min(due.get(node, math.inf), now if is_urgent else rested)
        self._due = WeakKeyDictionary({node: due[node] for node in sorted(due, key=_rank)})
        self._next_due = min(due.values(), default=math.inf)

    def _urgent(self, end: KvNode) -> ReferenceType[KvNode] | None:
        """Return the newest point of a branch, if it saves much K/V or much time."""
        points = _last_points(self._cache.holdings, end, num_points=1)
        newest = next((node for node in points if _kind(node) is not PointKind.PROMPT), None)
        if newest is None:
            return None
        place = self._index.covered(path_run(newest))
        num_new = newest.end - (place.num_tokens if place else 0)
        saves = num_new * self._layout.kv_bytes_per_token
        is_costly = self._rates.seconds(0, num_new) >= COSTLY_S
        return ref(newest) if is_costly or saves >= self._layout.snapshot_bytes else None


def _last_points(holdings: Holdings, end: KvNode, num_points: int) -> Iterator[KvNode]:
    """Yield the resume points of one branch to save, from its end upwards.

    These are the last ones, the ends of other conversations on the branch, and the end of a shared
    system prompt. The logits at the end of a prompt are saved for the newest prompts only.
    """
    num_prompts = num_found = 0
    for node in ancestry(end):
        if not holdings.is_resume_point(node) or not node.users:
            continue
        kind = _kind(node)
        num_prompts += kind is PointKind.PROMPT
        is_last = num_found < num_points and (kind is not PointKind.STRIDE or num_found == 0)
        is_old_prompt = kind is PointKind.PROMPT and num_prompts > _NUM_PROMPTS
        is_other_end = node is not end and bool(ending_at(node))
        if kind is PointKind.SYSTEM or is_other_end or (is_last and not is_old_prompt):
            yield node
            num_found += kind is not PointKind.PROMPT


def _kind(node: KvNode) -> PointKind:
    return node.snapshot.kind if node.snapshot else PointKind.TAIL


def _rank(node: KvNode) -> tuple[bool, int, int]:
    """Return a key that is larger for a more valuable resume point."""
    return _kind(node) is not PointKind.PROMPT, node.last_used, node.end
