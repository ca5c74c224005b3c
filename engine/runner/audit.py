"""Idle work that doubts the cache: a stored point is computed anew and compared."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Self

from engine.cache.hot import KvNode
from engine.cache.prefix_cache import Lease, PrefixCache
from engine.cache.radix import path_run
from engine.events import IdleKind
from engine.models.adapter import ModelAdapter
from engine.models.replay import replay

log = logging.getLogger(__name__)


class AuditJob:
    """Repeats the passes of one stored point on empty caches, one pass a step.

    Its caches lie in the head room that is left beside the budget.
    """

    conversation_id = None
    kind = IdleKind.AUDIT

    def __init__(
        self,
        adapter: ModelAdapter,
        cache: PrefixCache,
        node: KvNode,
        lease: Lease,
        on_fault: Callable[[Sequence[int]], None],
    ) -> None:
        self._cache = cache
        self._node = node
        self._lease = lease
        self._on_fault = on_fault
        self._run = path_run(node)
        self._passes = replay(adapter, lease.hot.caches, self._run)
        self.total = node.end
        self.done = 0

    @classmethod
    def start(
        cls,
        adapter: ModelAdapter,
        cache: PrefixCache,
        max_tokens: int,
        on_fault: Callable[[Sequence[int]], None],
    ) -> Self | None:
        """A job for the point of at most max_tokens checked least recently, None if there is none.

        on_fault is told the tokens up to a point that was wrong.
        """
        audit = cache.start_audit(adapter.new_caches, max_tokens)
        return cls(adapter, cache, *audit, on_fault) if audit is not None else None

    def step(self) -> bool:
        """One pass. False once the point is compared."""
        passed = next(self._passes, None)
        if passed is not None:
            self.done, _ = passed
            return True
        if not self._cache.end_audit(self._node, self._lease):
            log.error("a stored point at token %d was wrong and is dropped", self.total)
            self._on_fault(self._run.token_ids)
        return False

    def stop(self) -> None:
        """Something else comes first; the point is looked at another time."""
        self._cache.abandon(self._lease)
