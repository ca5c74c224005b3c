"""Idle work that feeds what a conversation's next prompt will begin with."""

from __future__ import annotations

from collections.abc import Callable

from engine.cache.held import Lease
from engine.cache.prefix_cache import PrefixCache
from engine.chat.prompt import PointKind
from engine.events import IdleKind, ReadAhead
from engine.runner.prefill import Prefill


class ReadAheadJob:
    """One chunk a step; what is fed is published at the end, or where it is stopped."""

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
        """Feed one chunk. False once all is fed and published."""
        try:
            self._prefill.step(self._prefill.end)
            if self._prefill.chunks:
                return True
            self._publish(self._prefill.lease)
        except BaseException:
            self._cache.abandon(self._prefill.lease)
            raise
        return False

    def stop(self) -> None:
        """Publish what is fed so far, with a point at its end that is given up before others.

        There is room for it: the point at the end of all has not been taken.
        """
        try:
            self._prefill.cut(PointKind.STRIDE)
            self._publish(self._prefill.lease)
        except BaseException:
            self._cache.abandon(self._prefill.lease)
            raise
