"""Scheduling of idle work: jobs that run while no request waits or runs.

Engine thread only, without mlx. Four kinds of jobs use the idle time. A read-ahead feeds the part
of a conversation's next prompt that is already known, so that the next answer starts sooner. A
title and a preview of an answer are written by the model and change no cached state. upkeep.py has
the work that no conversation waits for, such as audits. A job works in steps of one forward pass.
It may stop between two steps. So a request waits for at most one step. The engine loop (core.py)
calls `Idler.step` while there are no requests, and `Idler.make_way` when a request arrives.
idle_job.py has the interface of the jobs.

Priority: first the read-ahead of the shown conversation, then a preview, then the newest read-ahead
of any other conversation, then a title, then what upkeep.py does, audits last. On battery power the
only idle work is the read-ahead after a reply of the shown conversation, and the tests of faster
ways, once for each model. Previews and titles wait until the machine is plugged in.

A new kind of work needs an IdleKind, a task in idle_queue.py with its place in next_task and
comes_before, a function in IdleWorker that creates its job, and a call of it in Idler._make_job.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial

from engine.errors import Failure, PreviewRefusedError, attempt
from engine.events import (
    Event,
    IdleKind,
    PreviewProgress,
    PreviewStage,
    ReadAhead,
)
from engine.idle_job import IdleJob, IdleWorker
from engine.idle_questions import IdleQuestions
from engine.idle_queue import IdleQueue, IdleTask, PreviewTask, TitleTask, comes_before
from engine.power import ASK_EVERY_S
from engine.questions import MakePreview, MakeTitle, Preview, QuestionId
from engine.running_job import RunningJob, attempt_idle
from engine.types import ConversationId
from engine.upkeep import Upkeep


class Idler:
    """The queue of idle work. Jobs are chosen and started, and paused for more urgent work."""

    def __init__(
        self,
        emit: Callable[[Event], None],
        on_battery: Callable[[], bool],
        *,
        enabled: bool,
        audit_every_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create an idler without work.

        Args:
            emit: function that receives each event.
            on_battery: function that returns True if the machine runs on battery power.
            enabled: False if idle work is off at first. `want` switches it on.
            audit_every_s: lowest number of seconds between two audits.
            clock: function that returns the current time in seconds.
        """
        self._emit = emit
        self._on_battery = on_battery
        self._enabled = enabled
        self._upkeep = Upkeep(
            lambda: self._questions.is_end_awaited,
            lambda: self._enabled and not self._on_battery(),
            audit_every_s,
            clock,
        )
        self._queue = IdleQueue()
        self._running = RunningJob(emit)
        self._questions = IdleQuestions(emit)
        # The conversation that the window shows. Its tasks have priority.
        self._shown: ConversationId | None = None
        # Question of the preview that began last. The worker may still keep its state.
        self._previewed: QuestionId | None = None
        self._must_free_state = False  # True if that question is withdrawn, until the next step
        # The preview that waits, and the reason that the app knows. None if none waits.
        self._reported_wait: tuple[QuestionId, PreviewStage] | None = None

    @property
    def worker(self) -> IdleWorker | None:
        """The functions for the loaded model, None while no model is loaded."""
        return self._upkeep.worker

    @worker.setter
    def worker(self, worker: IdleWorker | None) -> None:
        self._upkeep.worker = worker

    @property
    def has_work(self) -> bool:
        """True if a step would do work or emit an event."""
        has_reports = self._running.is_reported or self._questions.is_end_awaited
        has_reports |= self._must_free_state or self._idle_wait not in (None, self._reported_wait)
        return has_reports or self.has_job_or_task or self._upkeep.has_work

    @property
    def has_job_or_task(self) -> bool:
        """True if a job is in progress, or a task may start. Upkeep does not count."""
        return self._running.job is not None or self._next() is not None

    @property
    def work_in_s(self) -> float:
        """Seconds until there may be work without a command; infinite if a command must come."""
        if self.worker is None:
            return math.inf
        settles_in_s = self._upkeep.settles_in_s
        if settles_in_s is not None:
            return settles_in_s
        if self._on_battery():
            # No event reports the end of battery power, so the caller asks again. Audits and the
            # timing of passes wait for the next command, tasks do not.
            may_start = bool(self._queue) if self._enabled else self._queue.has_questions
            return ASK_EVERY_S if may_start else math.inf
        if self.has_work:  # battery power has ended since the caller looked for work
            return 0.0
        return self._upkeep.audit_in_s if self._enabled else math.inf

    def want(self, *, shown: ConversationId | None, enabled: bool) -> None:
        """Set the conversation that the window shows, and whether idle work is on."""
        self._shown = shown
        if self._enabled and not enabled:
            self.pause()
        self._enabled = enabled

    def await_idle(self, question_id: QuestionId) -> None:
        """Answer a question of the class AwaitIdle once nothing is left to do."""
        self._questions.await_end(question_id)

    def make_title(self, question_id: QuestionId, question: MakeTitle) -> None:
        """Queue a title. It replaces an older one of the same conversation."""
        task = TitleTask(question_id, question.prompt)
        self._drop_title(task.conversation_id)
        self._questions.add(question_id)
        self._queue.add(task)
        self._answer_dropped_questions()

    def make_preview(self, question_id: QuestionId, question: MakePreview) -> None:
        """Queue a preview. It replaces the one before."""
        self._drop_preview()
        self._questions.add(question_id)
        self._queue.add(PreviewTask(question_id, question))
        self._answer_dropped_questions()

    def withdraw(self, question_id: QuestionId) -> None:
        """Cancel the queued or running title or preview of a question, if it has one.

        The next step frees the state of a preview, not this call: the queue may have a request that
        continues it.
        """
        self._must_free_state |= question_id == self._previewed
        for task in (*self._queue.questions, self._running.task):
            match task:
                case TitleTask() if task.question_id == question_id:
                    self._drop_title(task.conversation_id)
                case PreviewTask() if task.question_id == question_id:
                    self._drop_preview()
                case _:
                    pass
        self._answer_dropped_questions()

    def queue_read_ahead(self, task: ReadAhead) -> None:
        """Queue a read-ahead task. It replaces an older task of the same conversation.

        If the task has no messages, only cancel the older task.
        """
        if not task.messages:
            self.drop_read_ahead(task.conversation_id)
            return
        if task == self._running.task:
            return
        if task.fetch_only and self._has_task_of(task.conversation_id):
            # That task fetches the state too.
            return
        if task.is_draft and self._on_battery() and self._has_task_of(task.conversation_id):
            # On battery power, drafts wait. A queued draft would replace the read-ahead after the
            # last reply, and this read-ahead may run even on battery power.
            return
        self.drop_read_ahead(task.conversation_id)
        self._queue.add(task)

    def pause(self) -> None:
        """Stop the job in progress for more urgent work.

        The tokens that a read-ahead fed are kept. Its task is queued again, and so is a title or a
        preview.
        """
        self._upkeep.note_work()
        if self._running.task is not None:
            self._queue.add(self._running.task)
        self._running.end()
        self._running.report_stopped()

    def drop_read_ahead(self, conversation_id: ConversationId) -> None:
        """Cancel the queued or running read-ahead of a conversation."""
        self._queue.drop(conversation_id)
        if self._running.is_for(ReadAhead, conversation_id):
            self._running.end()

    def _drop_title(self, conversation_id: ConversationId) -> None:
        """Cancel the queued or running title of a conversation."""
        self._queue.drop_title(conversation_id)
        if self._running.is_for(TitleTask, conversation_id):
            self._running.end()

    def _drop_preview(self) -> None:
        """Cancel the queued or running preview."""
        self._queue.preview = None
        if isinstance(self._running.task, PreviewTask):
            self._running.end()

    def drop_work_of(self, conversation_id: ConversationId) -> None:
        """Cancel the read-ahead and the title of a conversation, before its cached state is freed.

        Its preview begins again without this state. The app withdraws it if it is not wanted.
        """
        self.drop_read_ahead(conversation_id)
        self._drop_title(conversation_id)
        if self._running.is_for(PreviewTask, conversation_id):
            self.pause()
        self._answer_dropped_questions()

    def make_way(self) -> None:
        """Stop the job in progress for a request, and report that a preview waits for it."""
        self.pause()
        self._report_wait(PreviewStage.ANSWERS)

    def clear(self) -> None:
        """Cancel the job in progress and all queued tasks."""
        self._queue.clear()
        self._running.end()
        self._running.report_stopped()
        self._answer_dropped_questions()

    def step(self) -> bool:
        """Start, advance or pause a job, or emit an event. Return False if there was no work."""
        self._free_state()
        wait = self._idle_wait
        if wait is not None and wait != self._reported_wait:
            self._report_wait(wait[1])
            return True
        task, job = self._next(), self._running.job
        if job is None:
            if task is None:
                # First the end of the last job, which the app waits for. The questions that await
                # the end of all work are answered before an audit, because none awaits an audit.
                return (
                    self._running.report_stopped()
                    or self._upkeep.step()
                    or self._questions.report_end()
                    or self._start_audit()
                )
            self._start(task)
        elif self._must_pause_on_battery(job) or (
            task is not None and comes_before(task, self._running.task, self._shown)
        ):
            self.pause()
        else:
            self._advance(job)
        self._answer_dropped_questions()
        return True

    def _next(self) -> IdleTask | None:
        if self.worker is None:
            return None
        return self._queue.next_task(
            self._shown, reads=self._enabled, on_battery=self._on_battery()
        )

    def _must_pause_on_battery(self, job: IdleJob) -> bool:
        """Return whether a job must pause because the machine runs on battery power."""
        is_for_shown = job.kind is IdleKind.READ_AHEAD and job.conversation_id == self._shown
        return not is_for_shown and self._on_battery()

    def _start(self, task: IdleTask) -> None:
        """Create the job of a task. The task is dropped if there is no job to do."""
        self._queue.remove(task)
        if isinstance(task, PreviewTask):
            job = self._start_preview(task)
        else:
            job = attempt_idle(lambda: self._make_job(task))
        if job is not None:
            self._running.begin(job, task)

    def _start_preview(self, task: PreviewTask) -> IdleJob | None:
        """Create the job of a preview, or answer with the reason why there is none."""
        self._reported_wait = None
        question_id = self._previewed = task.question_id
        job = attempt("a preview", lambda: self._make_preview(task))
        if isinstance(job, Failure):
            self._questions.answer(question_id, Preview(refusal=job.problem))
            return None
        return job

    def _free_state(self) -> None:
        if (
            self._must_free_state
            and self.worker is not None
            and self.worker.free_preview is not None
        ):
            self.worker.free_preview()
        self._must_free_state = False

    def _make_preview(self, task: PreviewTask) -> IdleJob:
        """Return the job of a preview.

        Raises:
            EngineError: the preview is refused, or the request would be.
        """
        assert self.worker is not None
        if self.worker.preview is None:
            raise PreviewRefusedError("A model that is divided over several Macs makes none.")

        def report(stage: PreviewStage, num_to_read: int, preview: Preview) -> None:
            self._emit(PreviewProgress(task.question_id, stage, num_to_read, preview))

        on_made = partial(self._questions.answer, task.question_id)
        return self.worker.preview(task.question.request, report, on_made)

    def _make_job(self, task: ReadAhead | TitleTask) -> IdleJob | None:
        assert self.worker is not None
        if isinstance(task, TitleTask):
            on_made = partial(self._questions.answer, task.question_id)
            return None if self.worker.title is None else self.worker.title(task.prompt, on_made)
        displaces = task.displaces or task.conversation_id == self._shown
        return self.worker.read_ahead(task, displaces=displaces)

    def _start_audit(self) -> bool:
        if not self._upkeep.is_audit_due:
            return False
        job = self._upkeep.start_audit()
        if job is not None:
            self._running.begin(job, None)
        return True

    def _advance(self, job: IdleJob) -> None:
        task = self._running.task
        if self._running.step(job):
            return
        if job.kind.is_reading:
            self._upkeep.note_work()
        if isinstance(task, PreviewTask) and self._questions.is_open(task.question_id):
            # An error ended the step. It is in the log.
            refusal = PreviewRefusedError("An error ended it.").problem
            self._questions.answer(task.question_id, Preview(refusal=refusal))

    def _has_task_of(self, conversation_id: ConversationId) -> bool:
        return self._running.is_for(ReadAhead, conversation_id) or conversation_id in self._queue

    @property
    def _idle_wait(self) -> tuple[QuestionId, PreviewStage] | None:
        """The queued preview, and the reason for its wait while no request waits or runs."""
        task = self._queue.preview
        if task is None or self.worker is None:
            return None
        if self._on_battery():
            return task.question_id, PreviewStage.BATTERY
        if self._running.is_for(ReadAhead, self._shown) or isinstance(self._next(), ReadAhead):
            return task.question_id, PreviewStage.CHAT
        return None

    def _report_wait(self, stage: PreviewStage) -> None:
        """Report the reason why the queued preview waits, if it is a new one."""
        task = self._queue.preview
        if task is not None and self._reported_wait != (task.question_id, stage):
            self._reported_wait = task.question_id, stage
            self._emit(PreviewProgress(task.question_id, stage))

    def _answer_dropped_questions(self) -> None:
        """Answer the questions of tasks that are neither queued nor in progress any more."""
        tasks = (*self._queue.questions, self._running.task)
        kept = {task.question_id for task in tasks if isinstance(task, TitleTask | PreviewTask)}
        self._questions.refuse_others(kept)
