"""Lanes: worker threads that run blocking calls and deliver the results to the main thread.

A lane is one worker thread that runs its calls in the order in which they were queued. Long work is
cut into steps (`run_aside`), and a step begins only when no call waits. An exception in a call is
logged and delivered as a Problem.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from threading import Lock
from typing import TypeVar

from PySide6.QtCore import QObject, Qt, Signal, Slot

from engine.errors import EngineError, problem_of
from engine.problem import Problem, ProblemKind

log = logging.getLogger(__name__)
T = TypeVar("T")


class TaskLane(QObject):
    """A worker thread and its queue of calls. Used from the main thread.

    Each call may have an on_result and an on_error callback, which run on the main thread, unless
    the lane is stopped. A failed call without on_error emits `failed`.
    """

    failed = Signal(object)  # argument: a Problem
    # argument: Callable[[], None], a callback to run on the main thread
    _delivered = Signal(object)

    def __init__(self, name: str, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
        self._delivered.connect(self._on_delivered, Qt.ConnectionType.QueuedConnection)
        self._stopped = False
        self._num_waiting = 0  # calls of run() that have not begun
        self._count = Lock()  # protects _num_waiting

    def run(
        self,
        call: Callable[[], T],
        on_result: Callable[[T], None] | None = None,
        on_error: Callable[[Problem], None] | None = None,
    ) -> None:
        """Queue a call for the worker thread, without blocking. A stopped lane ignores the call."""
        if not self._stopped:
            with self._count:
                self._num_waiting += 1
            self._executor.submit(self._begin, call, on_result, on_error)

    def run_aside(
        self,
        step: Callable[[], T | None],
        on_result: Callable[[T], None] | None = None,
        on_error: Callable[[Problem], None] | None = None,
    ) -> None:
        """Call `step` again and again, until it returns a value: the result.

        Calls of run() go first, so each of them waits for one step at most. If the lane is stopped,
        the remaining steps are not made.
        """
        if not self._stopped:
            self._executor.submit(self._step, step, on_result, on_error)

    def deliver(self, call: Callable[[], None]) -> None:
        """Run a call on the main thread later, unless the lane is stopped by then. Any thread."""
        self._delivered.emit(call)

    def stop(self) -> None:
        """Wait until all queued calls have run, then join the thread. Idempotent."""
        self._stopped = True
        self._executor.shutdown(wait=True)

    def _begin(
        self,
        call: Callable[[], T],
        on_result: Callable[[T], None] | None,
        on_error: Callable[[Problem], None] | None,
    ) -> None:
        with self._count:
            self._num_waiting -= 1
        self._work(call, on_result, on_error)

    def _step(
        self,
        step: Callable[[], T | None],
        on_result: Callable[[T], None] | None,
        on_error: Callable[[Problem], None] | None,
    ) -> None:
        def queue_next() -> None:
            with suppress(RuntimeError):  # the lane has been stopped
                self._executor.submit(self._step, step, on_result, on_error)

        def work() -> None:
            result = step()
            if result is None:
                queue_next()
            elif on_result is not None:
                self.deliver(partial(on_result, result))

        if self._num_waiting:
            queue_next()
        elif not self._stopped:
            self._work(work, None, on_error)

    def _work(
        self,
        call: Callable[[], T],
        on_result: Callable[[T], None] | None,
        on_error: Callable[[Problem], None] | None,
    ) -> None:
        try:
            result = call()
        # A panic in a Rust library raises a BaseException, not an Exception.
        except BaseException as error:
            problem = problem_of(error)
            if problem.kind is ProblemKind.STOPPED:
                log.info("a background call was stopped")
            elif isinstance(error, EngineError):
                log.warning("%s: %s", type(error).__name__, problem)
            else:
                log.exception("a background call failed")
            report = on_error or self.failed.emit
            self.deliver(lambda: report(problem))
        else:
            if on_result is not None:
                self.deliver(lambda: on_result(result))

    @Slot(object)
    def _on_delivered(self, delivery: Callable[[], None]) -> None:
        if not self._stopped:
            delivery()
