"""The requests that wait for their turn. Engine thread only.

The queue outlives the model: a request that is submitted while a model is loading is answered by it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from engine.errors import CancelledWaitingError, NoModelError
from engine.events import Event, RequestFailed, RequestQueued, Submit
from engine.scheduler import ScheduledRequest, Scheduler
from engine.types import RequestId


class WaitingRequests:
    """Submitted requests in order of arrival; the scheduler picks which one starts next."""

    def __init__(self, scheduler: Scheduler, emit: Callable[[Event], None]) -> None:
        self.scheduler = scheduler
        self._emit = emit
        self._submits: list[Submit] = []
        # Position in the queue in the last RequestQueued event, by request.
        self._positions: dict[RequestId, int] = {}

    def __bool__(self) -> bool:
        return bool(self._submits)

    def add(self, submit: Submit) -> None:
        """Queue a request behind all others."""
        self._submits.append(submit)

    def put_back(self, submit: Submit) -> None:
        """Put a popped request back at the head of the queue."""
        self._submits.insert(0, submit)

    def pop_next(
        self, running: Sequence[ScheduledRequest], reading: Collection[ScheduledRequest]
    ) -> Submit | None:
        """Remove and return the request that may start now, None if none may."""
        if not self._submits:
            return None
        submit = self.scheduler.next_to_start(self._submits, running, reading)
        if submit is not None:
            self._submits.remove(submit)
        return submit

    def cancel(self, request_id: RequestId) -> None:
        """Fail the request if it waits."""
        for submit in [one for one in self._submits if one.request.request_id == request_id]:
            self._submits.remove(submit)
            self._fail(submit, CancelledWaitingError("It was still waiting for its turn."))

    def refuse_all(self) -> None:
        """Fail every request: no model is loaded."""
        refused, self._submits = self.scheduler.order(self._submits), []
        for submit in refused:
            self._fail(submit, NoModelError("The request came before a model was ready."))

    def announce_positions(self) -> None:
        """Emit RequestQueued for each request whose position has changed."""
        if not (self._submits or self._positions):
            return
        order = self.scheduler.order(self._submits)
        positions = {submit.request.request_id: i + 1 for i, submit in enumerate(order)}
        for request_id, position in positions.items():
            if self._positions.get(request_id) != position:
                self._emit(RequestQueued(request_id, position))
        self._positions = positions

    def _fail(self, submit: Submit, error: CancelledWaitingError | NoModelError) -> None:
        self._emit(RequestFailed(submit.request.request_id, error.problem))
