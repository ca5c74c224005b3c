"""Jobs: long calls on a worker thread that report their progress and can be stopped."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from threading import Event
from typing import TypeVar

from typing_extensions import override

from app.bridge.tasks import TaskLane
from app.stopping import StoppedError
from engine.problem import Problem

T = TypeVar("T")


class Job:
    """A call that waits, runs or has ended. Any thread may use it.

    Args:
        on_progress: called with the share of the work that is done, on the thread of the work.
        on_stop: called when the job is stopped, such as to end a process that it waits for.
    """

    def __init__(
        self,
        on_progress: Callable[[float], None] = lambda _share: None,
        on_stop: Callable[[], None] = lambda: None,
    ) -> None:
        self.stopped = Event()
        self._on_progress = on_progress
        self._on_stop = on_stop

    def stop(self) -> None:
        """Let the job end with a StoppedError when it next reports its progress."""
        self.stopped.set()
        self._on_stop()

    def require_running(self) -> None:
        """Raise a StoppedError if the job was stopped. The work calls this, on any thread."""
        if self.stopped.is_set():
            raise StoppedError

    def report(self, share: float) -> None:
        """Report the share of the work that is done, 0 to 1. The work calls this, on its thread.

        Raises:
            StoppedError: the job was stopped.
        """
        self.require_running()
        self._on_progress(share)


class JobLane(TaskLane):
    """A worker thread that runs jobs one after the other. Used from the main thread."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._jobs: set[Job] = set()  # the jobs that have not ended

    def start(
        self,
        work: Callable[[Job], T],
        on_result: Callable[[T], None],
        on_error: Callable[[Problem], None],
        on_progress: Callable[[float], None] = lambda _share: None,
        on_stop: Callable[[], None] = lambda: None,
        *,
        quiet_s: float = 0.0,
    ) -> Job:
        """Queue a job. Its callbacks run on the main thread, unless the lane is stopped.

        A job that ends because it was stopped calls on_error with ProblemKind.STOPPED. Before that,
        stop() calls on_stop at once, also if the job still waits for its turn.

        quiet_s: seconds after the start, and after each call of on_progress, without another call.
        """
        reported = time.monotonic()

        def report(share: float) -> None:
            nonlocal reported
            if time.monotonic() - reported >= quiet_s:
                reported = time.monotonic()
                self.deliver(partial(on_progress, share))

        job = Job(report, on_stop)
        self._jobs.add(job)

        def run() -> T:
            try:
                return work(job)
            finally:
                self.deliver(partial(self._jobs.discard, job))

        self.run(run, on_result, on_error)
        return job

    def stop_jobs(self) -> None:
        """Stop all jobs. The lane can start others."""
        for job in self._jobs:
            job.stop()

    @override
    def stop(self) -> None:
        """Stop all jobs, then join the thread. Idempotent."""
        self.stop_jobs()
        super().stop()
