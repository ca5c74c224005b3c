"""The queue of submitted requests that have not started. Engine thread only.

core.py adds each Submit command to the queue. serving.py removes the request that the scheduler
picks, and puts it back if it does not fit in memory yet. The queue exists even while no model is
loaded. So a request that arrives while a model is loading waits for that model. RequestQueued
events report the position of each request, and the reason for its wait.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from engine.errors import CancelledWaitingError, NoModelError
from engine.events import Event, RequestFailed, RequestQueued, Submit, WaitReason
from engine.scheduler import ScheduledRequest, Scheduler
from engine.types import ConversationId, RequestId


class WaitingRequests:
    """Submitted requests in order of arrival. The scheduler picks the one that starts next."""

    def __init__(self, scheduler: Scheduler, emit: Callable[[Event], None]) -> None:
        self.scheduler = scheduler
        self._emit = emit
        self._submits: list[Submit] = []
        # The last RequestQueued event of each request that waits.
        self._reported: dict[RequestId, RequestQueued] = {}

    def __bool__(self) -> bool:
        return bool(self._submits)

    def add(self, submit: Submit) -> None:
        """Append a request to the queue."""
        self._submits.append(submit)

    def put_back(self, submit: Submit) -> None:
        """Put a popped request back at the head of the queue."""
        self._submits.insert(0, submit)

    def pop_next(
        self, running: Sequence[ScheduledRequest], reading: Collection[ScheduledRequest]
    ) -> Submit | None:
        """Remove and return the waiting request that may start now. Return None if none may start.

        Args:
            running: the requests that have started.
            reading: the running requests that still have prompt tokens to feed.
        """
        if not self._submits:
            return None
        submit = self.scheduler.next_to_start(self._submits, running, reading)
        if submit is not None:
            self._submits.remove(submit)
        return submit

    def cancel(self, request_id: RequestId) -> None:
        """Remove a waiting request and emit RequestFailed. Do nothing if it is not in the queue."""
        for submit in [one for one in self._submits if one.request.request_id == request_id]:
            self._submits.remove(submit)
            self._fail(submit, CancelledWaitingError("It was still waiting for its turn."))

    def refuse_all(self) -> None:
        """Remove all requests and emit RequestFailed with a NoModelError for each."""
        refused, self._submits = self.scheduler.order(self._submits), []
        for submit in refused:
            self._fail(submit, NoModelError("The request came before a model was ready."))

    def announce(
        self, reason: WaitReason, behind: ConversationId | None, held: Iterable[RequestId] = ()
    ) -> None:
        """Emit RequestQueued for each request whose position or reason has changed.

        Args:
            reason: the reason why none of the waiting requests may start.
            behind: the conversation whose prompt is read first, if one is read.
            held: started requests that are read after it.
        """
        order = [submit.request.request_id for submit in self.scheduler.order(self._submits)]
        first = behind if reason is WaitReason.READING else None
        events = [RequestQueued(name, 1 + at, reason, first) for at, name in enumerate(order)]
        events += [RequestQueued(name, 1, WaitReason.READING, behind) for name in held]
        for event in events:
            if self._reported.get(event.request_id) != event:
                self._emit(event)
        self._reported = {event.request_id: event for event in events}

    def _fail(self, submit: Submit, error: CancelledWaitingError | NoModelError) -> None:
        self._emit(RequestFailed(submit.request.request_id, error.problem))
