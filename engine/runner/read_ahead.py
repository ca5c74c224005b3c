"""Idle work that feeds the beginning of a conversation's next prompt."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial

from engine.cache.holdings import Lease
from engine.cache.points import PointKind
from engine.cache.prefix_cache import PrefixCache
from engine.cleanup import undo_on_error
from engine.events import IdleKind, ReadAhead
from engine.runner.prefill import Prefill


class ReadAheadJob:
    """Feeds one chunk a step. What is fed is published at the end, or where the job is stopped."""

    def __init__(
        self,
        task: ReadAhead,
        cache: PrefixCache,
        prefill: Prefill,
        publish: Callable[[Lease], None],
    ) -> None:
        self._cache = cache
        self._prefill = prefill
        self._publish = publish
        self.conversation_id = task.conversation_id
        self.kind = IdleKind.DRAFT if task.is_draft else IdleKind.READ_AHEAD
        self.total = prefill.end - prefill.start

    @property
    def done(self) -> int:
        return self._prefill.fed - self._prefill.start

    def step(self) -> bool:
        """Feed one chunk. Return False once all is fed and published."""
        with self._abandoned_on_error():
            self._prefill.step(self._prefill.end)
            if self._prefill.chunks:
                return True
            self._publish(self._prefill.lease)
        return False

    def stop(self) -> None:
        """Publish what is fed so far, with a resume point at its end that is evicted before others.

        There is room for it: the point at the end of all has not been taken.
        """
        with self._abandoned_on_error():
            self._prefill.cut(PointKind.STRIDE)
            self._publish(self._prefill.lease)

    def _abandoned_on_error(self) -> AbstractContextManager[None]:
        return undo_on_error(partial(self._cache.abandon, self._prefill.lease))
