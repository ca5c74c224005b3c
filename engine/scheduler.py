"""Priority of requests, and the time slice for prefill between two decode steps.

The module uses neither mlx nor threads. Requests of the conversation that the window shows have
priority, with all answers that are written there at once. All other requests are ordered by
arrival. Only one prompt is fed at a time. If a request with priority arrives, its prompt interrupts
the prompt that is being fed. So does a prompt with few tokens to feed, of any conversation: it
costs the other one few passes, and would else wait for all of them. The interrupted prompt keeps
its caches, and is fed further once the other prompt is complete.

While answers are being decoded, a prompt is fed in pieces between two decode steps.
`Scheduler.piece_s` limits the duration of a piece, so that the pause of an answer stays below
max_gap_s. There is one exception: a piece may always take a third of a decode step.

core.py creates one scheduler per engine, and sets `shown` when the window shows another
conversation. The scheduler outlives the loaded model. serving.py calls it before each step, and
reports the durations of decode steps with `note_decode`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Sequence
from statistics import median
from typing import Protocol, TypeVar

from engine.events import WaitReason
from engine.types import ConversationId, Request, chat_of


class ScheduledRequest(Protocol):
    """A waiting or running request."""

    @property
    def request(self) -> Request: ...


class ReadRequest(ScheduledRequest, Protocol):
    """A running request whose prompt is being fed."""

    @property
    def num_unread(self) -> int:
        """Number of prompt tokens that are still to be fed."""
        ...


# A prompt with at most this many tokens to feed is fed before longer ones.
SHORT_PROMPT = 512
# Highest number of characters in new messages that are expected to be a short prompt. If the state
# of the earlier messages is gone, the prompt is long all the same. It then waits after its start.
_SHORT_TEXT = 2000

# Number of recent decode steps that are used to estimate the duration of the next one.
_NUM_RECENT = 8
# Share of max_gap_s that the scheduler uses. The rest is a margin for steps that take longer than
# estimated.
_SHARE = 0.85

R = TypeVar("R", bound=ScheduledRequest)
P = TypeVar("P", bound=ReadRequest)


class Scheduler:
    """Priorities and time slices of requests. A scheduler stores durations, but no requests."""

    def __init__(self, *, max_running: int, max_gap_s: float) -> None:
        """Create a scheduler without measurements.

        Args:
            max_running: highest number of requests that are answered at the same time, besides one
                of the shown conversation: other programs could take all places for minutes.
            max_gap_s: intended longest pause of an answer, in seconds, while a prompt is fed.
        """
        self._max_running = max_running
        self._max_gap_s = max_gap_s
        # Seconds that each of the newest decode steps took.
        self._decode_s = deque[float](maxlen=_NUM_RECENT)
        # The conversation with priority, or None. core.py sets it.
        self.shown: ConversationId | None = None

    def order(self, requests: Iterable[R]) -> list[R]:
        """Return the requests sorted by priority, highest first. The sort is stable."""
        return sorted(requests, key=lambda one: not self._is_shown(one))

    def next_to_start(
        self,
        waiting: Sequence[R],
        running: Sequence[ScheduledRequest],
        reading: Collection[ScheduledRequest],
    ) -> R | None:
        """Return the waiting request that may start now, or None.

        A conversation has only one set of live caches, so it gets one answer at a time. Requests
        marked as `side` have separate caches and are exempt. A request that follows another one may
        not start before the prompt of that one is read. While another prompt is being fed, a
        request may start only if it has priority over that prompt, or adds little text.

        Args:
            waiting: the requests that have not started, in order of arrival.
            running: the requests that have started.
            reading: the running requests that still have prompt tokens to feed.
        """
        busy = {one.request.conversation_id for one in running if not one.request.side}
        free = [w for w in waiting if w.request.side or w.request.conversation_id not in busy]
        if len(running) > self._max_running:
            return None
        # If the first of several answers was cut off, one of the others reads the rest for all.
        unread = {one.request.request_id for one in waiting}
        unread |= {one.request.prompt_of for one in reading}
        free = [one for one in free if one.request.follows not in unread]
        if len(running) == self._max_running:  # one more place is for the shown conversation
            free = [one for one in free if self._is_shown(one)]
        for one in self.order(free):
            if _adds_little(one.request) or all(self._is_before(one, other) for other in reading):
                return one
        return None

    def next_to_read(self, reading: Sequence[P]) -> P:
        """Return the request whose prompt is fed next: a short one, else one of the shown chat."""

        def rank(one: P) -> tuple[bool, bool]:
            return one.num_unread > SHORT_PROMPT, not self._is_shown(one)

        return min(reading, key=rank)

    def reason(
        self, running: Sequence[ScheduledRequest], reading: Collection[ScheduledRequest]
    ) -> WaitReason:
        """Return the reason why no waiting request may start."""
        if len(running) >= self._max_running:
            return WaitReason.ANSWERS
        return WaitReason.READING if reading else WaitReason.TURN

    def note_decode(self, seconds: float) -> None:
        """Record the duration of the newest decode step. piece_s uses it for its estimate."""
        self._decode_s.append(seconds)

    @property
    def piece_s(self) -> float:
        """Longest time in seconds that prefill may take between two decode steps.

        The value is the rest of max_gap_s after a decode step, estimated as the longest of the
        recent steps. It is at least a third of a usual decode step, estimated as the median.
        Without this minimum, no time would be left for prefill if a decode step alone takes
        max_gap_s. A prompt would then wait until the running answers end.
        """
        gap_s = self._max_gap_s * _SHARE
        if not self._decode_s:
            return gap_s
        return max(median(self._decode_s) / 3, gap_s - max(self._decode_s))

    def _is_before(self, one: ScheduledRequest, other: ScheduledRequest) -> bool:
        """Return True if `one` has priority over `other`.

        This is the case if `one` belongs to the shown conversation and `other` does not.
        """
        return self._is_shown(one) and not self._is_shown(other)

    def _is_shown(self, one: ScheduledRequest) -> bool:
        return chat_of(one.request.conversation_id) == self.shown


def _adds_little(request: Request) -> bool:
    """Return True if messages that the model has not read are short, or read by another request."""
    if request.follows is not None:
        return True
    unread = request.new_messages | request.foreign_messages
    texts = (one.content for number, one in enumerate(request.messages) if number in unread)
    return sum(map(len, texts)) <= _SHORT_TEXT
