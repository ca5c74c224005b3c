"""The idle job in progress: its steps, its end, and the events that report it.

Engine thread only, without mlx. idle.py decides which job begins and when it must end.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from engine.errors import Failure, attempt
from engine.events import Event, IdleStopped, IdleWorking
from engine.idle_job import IdleJob
from engine.idle_queue import IdleTask
from engine.types import ConversationId

log = logging.getLogger(__name__)

T = TypeVar("T")


class RunningJob:
    """The job in progress, if there is one, and its task."""

    def __init__(self, emit: Callable[[Event], None]) -> None:
        self._emit = emit
        self.job: IdleJob | None = None
        self.task: IdleTask | None = None  # task of the job in progress, None for an audit
        self.is_reported = False  # True if IdleWorking was emitted but IdleStopped was not yet

    def begin(self, job: IdleJob, task: IdleTask | None) -> None:
        """Make a job the one in progress. Its first step comes later."""
        self.job, self.task = job, task
        log.debug("%s for %s starts: %d tokens", job.kind.value, job.conversation_id, job.total)
        self._report_working(job)

    def step(self, job: IdleJob) -> bool:
        """Do one step of the job in progress. Return False if it is complete or raised an error."""
        is_working = bool(attempt_idle(job.step))
        if is_working:
            self._report_working(job)
        else:
            self.job = self.task = None
        return is_working

    def end(self) -> None:
        """End the job in progress early, if there is one."""
        if self.job is not None:
            attempt_idle(self.job.stop)
        self.job = self.task = None

    def is_for(self, kind: type[IdleTask], conversation_id: ConversationId | None) -> bool:
        """Return True if the job in progress does a task of this kind for a conversation."""
        return isinstance(self.task, kind) and self.task.conversation_id == conversation_id

    def report_stopped(self) -> bool:
        """Emit IdleStopped if the last report was IdleWorking. Return False if it was not."""
        was_reported, self.is_reported = self.is_reported, False
        if was_reported:
            self._emit(IdleStopped())
        return was_reported

    def _report_working(self, job: IdleJob) -> None:
        self._emit(
            IdleWorking(
                job.conversation_id,
                job.kind,
                job.done,
                job.total,
                job.num_cached,
                job.reads_pictures,
            )
        )
        self.is_reported = True


def attempt_idle(work: Callable[[], T]) -> T | None:
    """Call work and return its result. If it raises, log the error and return None."""
    result = attempt("idle work", work)
    if not isinstance(result, Failure):
        return result
    if result.is_expected:
        log.info("an idle job ended with an error: %s", result.problem.log_text)
    return None
