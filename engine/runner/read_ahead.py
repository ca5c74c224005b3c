"""An idle job that feeds the beginning of a conversation's next prompt before it is requested."""

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
    """An idle job that feeds a chunk, or a part of it, per step, then publishes all tokens."""

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
        self.num_cached = prefill.start
        self.total = prefill.end - prefill.start  # number of tokens to feed
        self.reads_pictures = prefill.reads_pictures

    @property
    def done(self) -> int:
        return self._prefill.fed - self._prefill.start

    def step(self) -> bool:
        """Feed one chunk, or a part of it. Return False once all chunks are fed and published."""
        with self._abandoned_on_error():
            self._prefill.step(self._prefill.end)
            if self._prefill.is_left:
                return True
            self._publish(self._prefill.lease)
        return False

    def stop(self) -> None:
        """End the job early: publish the fed tokens, with a resume point at their end.

        The kind of this resume point is STRIDE, which is evicted early. The snapshot fits into the
        budget, because the budget had room for a snapshot at the end of the prompt when the job
        began. The job ends before that snapshot is captured.
        """
        with self._abandoned_on_error():
            self._prefill.cut(PointKind.STRIDE)
            self._publish(self._prefill.lease)

    def _abandoned_on_error(self) -> AbstractContextManager[None]:
        return undo_on_error(partial(self._cache.abandon, self._prefill.lease))
