"""Order of requests: which one starts, whose prompt is read next, how long a piece of it may take. Pure.

The shown conversation comes before the others, an earlier request before a later one. One prompt is
read at a time; it waits while a request before it is read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Sequence
from statistics import median
from typing import Protocol, TypeVar

from engine.types import ConversationId, Request


class ScheduledRequest(Protocol):
    """A request, waiting or running. Collections of them are in order of arrival."""

    @property
    def request(self) -> Request: ...


_NUM_RECENT = 8  # decode steps from which the next one's duration is estimated
_SHARE = 0.85  # of the gap; the rest is a margin for pieces that take longer than estimated

R = TypeVar("R", bound=ScheduledRequest)


class Scheduler:
    """Orders requests. It keeps no request itself."""

    def __init__(self, *, max_running: int, max_gap_s: float) -> None:
        """Make a scheduler without measurements.

        Args:
            max_running: requests that are answered at the same time, at most.
            max_gap_s: seconds between two tokens of an answer while a prompt is read.
        """
        self._max_running = max_running
        self._max_gap_s = max_gap_s
        self._decode_s = deque[float](maxlen=_NUM_RECENT)
        self.shown: ConversationId | None = None

    def order(self, requests: Iterable[R]) -> list[R]:
        """Return the requests by priority, the first one first."""
        return sorted(requests, key=lambda one: one.request.conversation_id != self.shown)

    def next_to_start(
        self,
        waiting: Sequence[R],
        running: Sequence[ScheduledRequest],
        reading: Collection[ScheduledRequest],
    ) -> R | None:
        """Return the waiting request that may start now, None if none may.

        A conversation has one answer at a time: its live caches are one.
        """
        busy = {one.request.conversation_id for one in running if not one.request.side}
        free = [w for w in waiting if w.request.side or w.request.conversation_id not in busy]
        if not free or len(running) >= self._max_running:
            return None
        first = self.order(free)[0]
        may_start = all(self._is_before(first, one) for one in reading)
        return first if may_start else None

    def note_decode(self, seconds: float) -> None:
        """Record the duration of the newest decode step."""
        self._decode_s.append(seconds)

    @property
    def piece_s(self) -> float:
        """Seconds for a piece of a prompt between two decode steps.

        At least a third of a decode step: where a step alone fills the gap, a prompt of a few words would
        otherwise be read for as long as an answer lasts.
        """
        gap_s = self._max_gap_s * _SHARE
        if not self._decode_s:
            return gap_s
        return max(median(self._decode_s) / 3, gap_s - max(self._decode_s))

    def _is_before(self, one: ScheduledRequest, other: ScheduledRequest) -> bool:
        shown = self.shown
        return one.request.conversation_id == shown != other.request.conversation_id
