"""Priority of requests, and the time slice of prefill between two decode steps.

The module uses neither mlx nor threads. Requests of the conversation that the window shows have
priority. Among the others an earlier request comes before a later one. One prompt is read at a
time; the prompt of a request with priority interrupts the one in progress. While answers are being
decoded, a prompt is fed in pieces between their tokens, and `Scheduler.piece_s` limits a piece so
that no answer pauses for longer than max_gap_s. serving.py calls the scheduler before each step,
and reports the durations of decode steps with `note_decode`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Sequence
from statistics import median
from typing import Protocol, TypeVar

from engine.types import ConversationId, Request


class ScheduledRequest(Protocol):
    """A waiting or running request. Every collection of these is in order of arrival."""

    @property
    def request(self) -> Request: ...


# Number of recent decode steps from which the duration of the next one is estimated.
_NUM_RECENT = 8
# Share of max_gap_s that is planned. The rest is a margin for steps that take longer than
# estimated.
_SHARE = 0.85

R = TypeVar("R", bound=ScheduledRequest)


class Scheduler:
    """Priorities and time slices of requests. Holds measurements, but no requests."""

    def __init__(self, *, max_running: int, max_gap_s: float) -> None:
        """Create a scheduler without measurements.

        Args:
            max_running: highest number of requests that are answered at the same time.
            max_gap_s: seconds between two tokens of an answer while a prompt is read, at most.
        """
        self._max_running = max_running
        self._max_gap_s = max_gap_s
        self._decode_s = deque[float](maxlen=_NUM_RECENT)  # durations of the newest decode steps
        self.shown: ConversationId | None = None  # the conversation with priority

    def order(self, requests: Iterable[R]) -> list[R]:
        """Return the requests sorted by priority, highest first. Equal ones keep their order."""
        return sorted(requests, key=lambda one: one.request.conversation_id != self.shown)

    def next_to_start(
        self,
        waiting: Sequence[R],
        running: Sequence[ScheduledRequest],
        reading: Collection[ScheduledRequest],
    ) -> R | None:
        """Return the waiting request that may start now, or None.

        A conversation has only one set of live caches, so it gets one answer at a time. Side
        requests have caches of their own. A request starts beside a prompt in progress only if it
        has priority.

        Args:
            waiting: the requests that have not started.
            running: the requests that have started.
            reading: the running requests whose prompts are not completely fed.
        """
        busy = {one.request.conversation_id for one in running if not one.request.side}
        free = [w for w in waiting if w.request.side or w.request.conversation_id not in busy]
        if not free or len(running) >= self._max_running:
            return None
        first = self.order(free)[0]
        may_start = all(self._is_before(first, one) for one in reading)
        return first if may_start else None

    def note_decode(self, seconds: float) -> None:
        """Record the duration of the newest decode step, for the estimate in piece_s."""
        self._decode_s.append(seconds)

    @property
    def piece_s(self) -> float:
        """Seconds that prefill may take between two decode steps.

        The value is at least a third of a decode step. Otherwise, where a decode step alone takes
        max_gap_s, even a short prompt would be read for as long as the running answers last.
        """
        gap_s = self._max_gap_s * _SHARE
        if not self._decode_s:
            return gap_s
        return max(median(self._decode_s) / 3, gap_s - max(self._decode_s))

    def _is_before(self, one: ScheduledRequest, other: ScheduledRequest) -> bool:
        """Return whether only the first of two requests belongs to the shown conversation."""
        shown = self.shown
        return one.request.conversation_id == shown != other.request.conversation_id
