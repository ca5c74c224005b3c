"""The order, the interruption and the events of idle work, with jobs that only count steps."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from engine.errors import TemplateError
from engine.events import (
    Answered,
    Event,
    IdleKind,
    IdleStopped,
    IdleWorking,
    PreviewProgress,
    PreviewStage,
    ReadAhead,
)
from engine.idle import Idler
from engine.idle_job import IdleWorker
from engine.idle_queue import IdleQueue
from engine.power import ASK_EVERY_S, Battery
from engine.problem import Problem
from engine.questions import (
    Ask,
    AwaitIdle,
    MakePreview,
    MakeTitle,
    NextPrompt,
    Preview,
    QuestionId,
)
from engine.types import ConversationId, Message, Request, RequestId, Role

A, B, C = ConversationId("A"), ConversationId("B"), ConversationId("C")


def task(
    conversation_id: ConversationId, text: str = "hello", *, is_draft: bool = False
) -> ReadAhead:
    message = Message(role=Role.USER if is_draft else Role.ASSISTANT, content=text)
    return ReadAhead(conversation_id=conversation_id, messages=(message,), is_draft=is_draft)


@dataclass
class CountingJob:
    """An idle job that does nothing but count its steps."""

    conversation_id: ConversationId | None
    kind: IdleKind
    total: int  # number of steps until the job is done
    on_made: Callable[[str], None] = lambda _: None
    done: int = 0
    num_cached: int = 0
    reads_pictures: bool = False
    is_stopped: bool = False
    fails: bool = False

    def step(self) -> bool:
        if self.fails:
            raise RuntimeError("a layer failed")
        self.done += 1
        if self.done == self.total:
            self.on_made("a title")
        return self.done < self.total

    def stop(self) -> None:
        self.is_stopped = True


@dataclass
class IdlerRig:
    """An idler, with records of the jobs that it created and the events that it emitted."""

    num_pieces: int = 2
    enabled: bool = True
    on_battery: bool = False
    refuse: Callable[[ReadAhead], None] = lambda _: None
    now: float = 0.0
    num_passes: int = 0
    num_measured: int = 0
    made: list[tuple[ReadAhead, CountingJob]] = field(default_factory=list)
    titles: list[CountingJob] = field(default_factory=list)
    previews: list[CountingJob] = field(default_factory=list)
    displacing: list[ConversationId] = field(default_factory=list)
    audits: list[CountingJob] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.idler = Idler(
            self.events.append,
            lambda: self.on_battery,
            enabled=self.enabled,
            audit_every_s=60.0,
            clock=lambda: self.now,
        )
        self.idler.worker = IdleWorker(
            self.read_ahead,
            self.audit,
            measure_passes=self.measure_pass if self.num_passes else None,
            title=self.title,
            preview=self.preview,
        )

    def want(self, *, shown: ConversationId | None = None, enabled: bool = True) -> None:
        self.idler.want(shown=shown, enabled=enabled)

    def title(self, prompt: NextPrompt, on_made: Callable[[str], None]) -> CountingJob:
        self.titles.append(
            CountingJob(prompt.conversation_id, IdleKind.TITLE, self.num_pieces, on_made)
        )
        return self.titles[-1]

    def preview(
        self,
        request: Request,
        on_progress: Callable[[PreviewStage, int, Preview], None],
        on_made: Callable[[Preview], None],
    ) -> CountingJob:
        def make(_: str) -> None:
            on_made(Preview(content="A boat"))

        self.previews.append(
            CountingJob(request.conversation_id, IdleKind.PREVIEW, self.num_pieces, make)
        )
        return self.previews[-1]

    def make_preview(self, conversation_id: ConversationId) -> QuestionId:
        request = Request(
            request_id=RequestId("preview"),
            conversation_id=conversation_id,
            messages=(),
            new_messages=frozenset(),
        )
        ask = Ask(MakePreview(request))
        self.idler.make_preview(ask.question_id, MakePreview(request))
        return ask.question_id

    @property
    def waits(self) -> list[PreviewStage]:
        return [event.stage for event in self.events if isinstance(event, PreviewProgress)]

    def await_idle(self) -> Answered:
        """Put a question, and return its answer."""
        ask = Ask(AwaitIdle())
        self.idler.await_idle(ask.question_id)
        return Answered(ask.question_id, None)

    def make_title(self, conversation_id: ConversationId) -> QuestionId:
        message = Message(role=Role.USER, content="name it")
        question = MakeTitle(NextPrompt(conversation_id=conversation_id, messages=(message,)))
        ask = Ask(question)
        self.idler.make_title(ask.question_id, question)
        return ask.question_id

    @property
    def answers(self) -> dict[QuestionId, bool]:
        """The answered questions, and whether each got what it asked for."""
        answered = [event for event in self.events if isinstance(event, Answered)]
        assert len({one.question_id for one in answered}) == len(answered)
        return {one.question_id: not isinstance(one.answer, Problem) for one in answered}

    def measure_pass(self) -> bool:
        self.num_measured += 1
        return self.num_measured < self.num_passes

    def audit(self) -> CountingJob:
        self.audits.append(CountingJob(None, IdleKind.AUDIT, self.num_pieces))
        return self.audits[-1]

    def read_ahead(self, task: ReadAhead, *, displaces: bool) -> CountingJob | None:
        self.refuse(task)
        if displaces:
            self.displacing.append(task.conversation_id)
        kind = IdleKind.DRAFT if task.is_draft else IdleKind.READ_AHEAD
        job = CountingJob(task.conversation_id, kind, self.num_pieces)
        self.made.append((task, job))
        return job if self.num_pieces else None

    def run(self) -> None:
        """Step until no work is left, which is when the engine's loop would sleep."""
        while self.idler.has_work:
            assert self.idler.step()
        assert not self.idler.step()

    @property
    def order(self) -> list[ConversationId]:
        return [task.conversation_id for task, _ in self.made]


# Timed passes


def test_passes_are_timed_once_per_model_without_events() -> None:
    rig = IdlerRig(num_passes=5)
    rig.now += 1.0
    rig.run()
    rig.run()

    assert rig.num_measured == 5
    assert rig.events == []
    rig.idler.worker = IdleWorker(rig.read_ahead, rig.audit, measure_passes=rig.measure_pass)
    rig.now += 1.0
    rig.run()
    assert rig.num_measured == 6


def test_first_second_after_a_load_is_free_for_a_message_unless_idleness_is_awaited() -> None:
    rig = IdlerRig(num_passes=2)
    rig.idler.worker = IdleWorker(
        rig.read_ahead, rig.audit, test_ways=rig.measure_pass, measure_passes=rig.measure_pass
    )
    rig.run()
    assert rig.num_measured == 0
    assert rig.idler.work_in_s == 1.0
    rig.now += 0.75
    rig.run()
    assert rig.num_measured == 0
    assert rig.idler.work_in_s == 0.25

    rig.await_idle()
    assert rig.idler.step()
    assert rig.num_measured == 1


def test_passes_are_not_timed_on_battery_or_while_idle_work_is_off() -> None:
    for rig in (
        IdlerRig(num_passes=5, on_battery=True),
        IdlerRig(num_passes=5, enabled=False),
    ):
        rig.run()

        assert rig.num_measured == 0


def test_read_ahead_comes_before_timed_passes() -> None:
    rig = IdlerRig(num_passes=5)
    rig.idler.queue_read_ahead(task(A))
    assert rig.idler.step()

    assert rig.order == [A]
    assert rig.num_measured == 0


def test_timed_pass_that_fails_is_the_last_one() -> None:
    rig = IdlerRig()

    def fail() -> bool:
        rig.num_measured += 1
        raise RuntimeError

    rig.idler.worker = IdleWorker(rig.read_ahead, rig.audit, measure_passes=fail)
    rig.now += 1.0
    rig.run()

    assert rig.num_measured == 1


# The queue


def test_queue_gives_shown_conversation_first_then_the_newest() -> None:
    queue = IdleQueue()
    for name in (A, B, C):
        queue.add(task(name))
    order: list[ConversationId] = []
    while (first := queue.next_task(A, reads=True, on_battery=False)) is not None:
        order.append(first.conversation_id)
        queue.drop(first.conversation_id)

    assert order == [A, C, B]


def test_queue_replaces_older_task_of_a_conversation() -> None:
    queue = IdleQueue()
    queue.add(task(A, "old"))
    queue.add(task(B))
    queue.add(task(A, "new"))

    assert queue.next_task(None, reads=True, on_battery=False) == task(A, "new")
    queue.drop(A)
    assert queue.next_task(None, reads=True, on_battery=False) == task(B)
    queue.drop(B)
    assert queue.next_task(None, reads=True, on_battery=False) is None


def test_queue_on_battery_gives_only_the_shown_conversations_reply() -> None:
    queue = IdleQueue()
    queue.add(task(A))
    queue.add(task(B, is_draft=True))

    assert queue.next_task(None, reads=True, on_battery=True) is None
    assert queue.next_task(B, reads=True, on_battery=True) is None
    assert queue.next_task(A, reads=True, on_battery=True) == task(A)


def test_queue_over_its_limit_drops_the_oldest_tasks() -> None:
    queue = IdleQueue()
    names = [ConversationId(f"{number}") for number in range(40)]
    for name in names:
        queue.add(task(name))
    kept: list[ConversationId] = []
    while (first := queue.next_task(None, reads=True, on_battery=False)) is not None:
        kept.append(first.conversation_id)
        queue.drop(first.conversation_id)

    assert kept == names[:-33:-1]


# Jobs


def test_idler_reports_each_step_and_when_it_stops() -> None:
    rig = IdlerRig()
    rig.idler.queue_read_ahead(task(A))
    rig.idler.queue_read_ahead(task(B, is_draft=True))
    rig.run()

    assert rig.events == [
        IdleWorking(B, IdleKind.DRAFT, 0, 2),
        IdleWorking(B, IdleKind.DRAFT, 1, 2),
        IdleWorking(A, IdleKind.READ_AHEAD, 0, 2),
        IdleWorking(A, IdleKind.READ_AHEAD, 1, 2),
        IdleStopped(),
    ]
    assert not rig.idler.has_work


def test_each_await_idle_gets_one_answer() -> None:
    rig = IdlerRig()
    rig.idler.queue_read_ahead(task(A))
    answers = [rig.await_idle() for _ in range(2)]
    rig.run()
    rig.run()

    assert rig.events[-3:] == [IdleStopped(), *answers]
    assert len(rig.answers) == 2


def test_task_with_nothing_to_read_emits_no_event() -> None:
    rig = IdlerRig(num_pieces=0)
    rig.idler.queue_read_ahead(task(A))
    rig.run()

    assert rig.order == [A]
    assert rig.events == []


def test_paused_job_is_stopped_and_its_task_starts_again_later() -> None:
    rig = IdlerRig(num_pieces=3)
    rig.idler.queue_read_ahead(task(A))
    rig.idler.step()
    rig.idler.step()
    rig.idler.pause()
    ((_, job),) = rig.made

    assert (job.done, job.is_stopped) == (1, True)
    assert rig.events[-1] == IdleStopped()
    assert rig.idler.has_work
    rig.run()
    assert rig.order == [A, A]


def test_newer_task_stops_the_job_of_the_older() -> None:
    rig = IdlerRig()
    rig.idler.queue_read_ahead(task(A, "old"))
    rig.idler.step()
    rig.idler.queue_read_ahead(task(A, "new"))
    rig.run()

    assert [made.messages[0].content for made, _ in rig.made] == ["old", "new"]
    assert [job.is_stopped for _, job in rig.made] == [True, False]


def test_task_queued_again_while_it_runs_is_not_restarted() -> None:
    rig = IdlerRig()
    rig.idler.queue_read_ahead(task(A))
    rig.idler.step()
    rig.idler.queue_read_ahead(task(A))
    rig.run()

    assert rig.order == [A]


def test_shown_conversation_interrupts_job_of_another() -> None:
    rig = IdlerRig(num_pieces=3)
    rig.idler.queue_read_ahead(task(A))
    rig.idler.queue_read_ahead(task(B))
    rig.idler.step()
    rig.want(shown=A)
    rig.run()

    assert rig.order == [B, A, B]
    assert rig.made[0][1].is_stopped


def test_dropped_conversation_stops_its_job() -> None:
    rig = IdlerRig()
    rig.idler.queue_read_ahead(task(A))
    rig.idler.queue_read_ahead(task(B))
    rig.idler.step()
    rig.idler.drop_read_ahead(B)
    rig.idler.drop_read_ahead(A)
    rig.run()

    assert rig.order == [B]
    assert rig.made[0][1].is_stopped
    assert rig.events[-1] == IdleStopped()


def test_idler_switched_off_waits_until_it_is_switched_on() -> None:
    rig = IdlerRig(enabled=False)
    rig.idler.queue_read_ahead(task(A))
    assert not rig.idler.has_work
    rig.run()
    assert rig.order == []
    rig.want(enabled=True)
    rig.idler.step()
    rig.want(enabled=False)
    rig.run()
    assert rig.order == [A]
    assert rig.made[0][1].is_stopped
    rig.want(enabled=True)
    rig.run()

    assert rig.order == [A, A]


def test_idler_without_a_model_waits() -> None:
    rig = IdlerRig()
    rig.idler.worker = None
    rig.idler.queue_read_ahead(task(A))

    assert not rig.idler.step()
    assert not rig.idler.has_work


def test_draft_on_battery_does_not_replace_the_reply() -> None:
    rig = IdlerRig(on_battery=True)
    rig.want(shown=A)
    rig.idler.queue_read_ahead(task(A, "reply"))
    rig.idler.queue_read_ahead(task(A, "draft", is_draft=True))
    rig.idler.queue_read_ahead(task(B))
    rig.run()

    assert [made.messages[0].content for made, _ in rig.made] == ["reply"]
    rig.on_battery = False
    rig.run()
    assert rig.order == [A, B]


def test_job_of_hidden_conversation_pauses_on_battery() -> None:
    rig = IdlerRig(num_pieces=3)
    rig.want(shown=A)
    rig.idler.queue_read_ahead(task(B))
    rig.idler.step()
    rig.on_battery = True
    rig.run()
    assert rig.made[0][1].is_stopped
    assert rig.made[0][1].done == 0
    rig.on_battery = False
    rig.run()

    assert rig.order == [B, B]
    assert rig.made[1][1].done == 3


def test_task_without_messages_cancels_the_previous_task() -> None:
    rig = IdlerRig()
    rig.idler.queue_read_ahead(task(A))
    rig.idler.queue_read_ahead(task(B))
    rig.idler.queue_read_ahead(ReadAhead(conversation_id=B, messages=()))
    rig.run()

    assert rig.order == [A]


def test_error_ends_one_job_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    rig = IdlerRig()
    rig.idler.queue_read_ahead(task(A))
    rig.idler.queue_read_ahead(task(B))
    rig.idler.step()
    rig.made[0][1].fails = True
    rig.run()

    assert rig.order == [B, A]
    assert rig.made[1][1].done == 2
    assert [record.levelno for record in caplog.records] == [logging.ERROR]


def test_template_error_is_logged_as_info(caplog: pytest.LogCaptureFixture) -> None:
    def refuse(task: ReadAhead) -> None:
        if task.conversation_id == B:
            raise TemplateError("no such words")

    caplog.set_level(logging.INFO)
    rig = IdlerRig(refuse=refuse)
    rig.idler.queue_read_ahead(task(A))
    rig.idler.queue_read_ahead(task(B))
    rig.run()

    assert rig.order == [A]
    assert [record.levelno for record in caplog.records] == [logging.INFO]
    assert TemplateError.title in caplog.text
    assert "no such words" not in caplog.text  # a template may quote a message


# Sleep


def test_end_of_battery_power_is_looked_for_while_a_task_waits_for_it() -> None:
    rig = IdlerRig(on_battery=True)
    rig.idler.queue_read_ahead(task(B))
    rig.run()
    assert rig.idler.work_in_s == ASK_EVERY_S
    rig.on_battery = False
    assert rig.idler.work_in_s == 0.0, "it ended after the engine looked for work"
    rig.run()
    assert rig.idler.work_in_s == 60.0


def test_switched_off_tasks_do_not_wake_the_engine_on_battery() -> None:
    rig = IdlerRig(on_battery=True, enabled=False)
    rig.idler.queue_read_ahead(task(B))
    assert rig.idler.work_in_s == math.inf
    rig.make_title(B)
    assert rig.idler.work_in_s == ASK_EVERY_S


# The battery


@dataclass
class FakeCharge:
    power_plugged: bool | None


@pytest.mark.parametrize(
    ("charge", "in_use"),
    [
        (None, False),
        (FakeCharge(None), False),
        (FakeCharge(True), False),
        (FakeCharge(False), True),
    ],
)
def test_battery_is_in_use_only_if_the_system_says_so(
    monkeypatch: pytest.MonkeyPatch, charge: FakeCharge | None, in_use: bool
) -> None:
    monkeypatch.setattr("psutil.sensors_battery", lambda: charge)

    assert Battery().in_use() is in_use


def test_unreadable_battery_counts_as_not_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise OSError("no such file")

    monkeypatch.setattr("psutil.sensors_battery", fail)

    assert not Battery().in_use()


def test_battery_is_read_every_few_seconds_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    charge, now = FakeCharge(False), [100.0]
    monkeypatch.setattr("psutil.sensors_battery", lambda: charge)
    battery = Battery(clock=lambda: now[0])
    assert battery.in_use()
    charge.power_plugged = True
    now[0] += 4.0
    assert battery.in_use()
    now[0] += 4.0

    assert not battery.in_use()


# Audits, and room in the cache


def test_audit_runs_after_other_work_and_once_per_interval() -> None:
    rig = IdlerRig()
    rig.now = 61.0
    rig.idler.queue_read_ahead(task(A))
    answer = rig.await_idle()
    rig.run()

    assert [event.kind for event in rig.events if isinstance(event, IdleWorking)] == [
        IdleKind.READ_AHEAD,
        IdleKind.READ_AHEAD,
        IdleKind.AUDIT,
        IdleKind.AUDIT,
    ]
    # The answer does not wait for the audit.
    reached = rig.events.index(answer)
    assert not any(
        isinstance(event, IdleWorking) and event.kind is IdleKind.AUDIT
        for event in rig.events[:reached]
    )
    rig.now += 59.0
    rig.idler.queue_read_ahead(task(A))
    rig.run()
    assert len(rig.audits) == 1
    rig.now += 1.0
    rig.run()
    assert len(rig.audits) == 2
    # No work was done since the last audit, so none is due: an unused engine stays idle.
    rig.now += 1000.0
    rig.run()
    assert len(rig.audits) == 2


@pytest.mark.parametrize("spared", ["on_battery", "disabled"])
def test_audit_does_not_run_on_battery_or_while_disabled(spared: str) -> None:
    rig = IdlerRig(on_battery=spared == "on_battery", enabled=spared != "disabled")
    rig.now = 61.0
    rig.run()

    assert not rig.audits


def test_read_ahead_interrupts_an_audit() -> None:
    rig = IdlerRig(num_pieces=3)
    rig.now = 61.0
    rig.idler.pause()  # the engine pauses the idler like this when a request arrives
    assert rig.idler.step()
    rig.idler.queue_read_ahead(task(A))
    rig.run()

    assert rig.audits[0].is_stopped
    assert rig.order == [A]


def test_only_the_shown_conversation_may_displace_other_state() -> None:
    rig = IdlerRig()
    rig.want(shown=A)
    for name in (A, B, C):
        rig.idler.queue_read_ahead(task(name))
    rig.run()

    assert rig.order == [A, C, B]
    assert rig.displacing == [A]


# Titles


def test_titles_come_after_read_aheads_and_before_the_answer_to_await_idle() -> None:
    rig = IdlerRig()
    rig.make_title(A)
    answer = rig.await_idle()
    rig.idler.queue_read_ahead(task(B))
    rig.run()

    kinds = [event.kind for event in rig.events if isinstance(event, IdleWorking)]
    assert kinds == [IdleKind.READ_AHEAD] * 2 + [IdleKind.TITLE] * 2
    assert rig.events[-1] == answer


def test_read_ahead_interrupts_a_title_which_begins_again() -> None:
    rig = IdlerRig(num_pieces=3)
    rig.make_title(A)
    rig.idler.step()
    rig.idler.step()
    rig.idler.queue_read_ahead(task(B))
    rig.idler.step()
    assert rig.titles[0].is_stopped
    rig.run()

    assert [job.done for job in rig.titles] == [1, 3]


def test_title_never_interrupts_a_read_ahead_even_of_the_shown_conversation() -> None:
    rig = IdlerRig(num_pieces=3)
    rig.want(shown=A)
    rig.idler.queue_read_ahead(task(B))
    rig.idler.step()
    rig.make_title(A)
    rig.run()

    assert [job.done for _, job in rig.made] == [3]
    assert [job.done for job in rig.titles] == [3]


def test_paused_title_begins_again_in_the_next_idle_time() -> None:
    rig = IdlerRig(num_pieces=3)
    rig.make_title(A)
    rig.idler.step()
    rig.idler.pause()
    assert rig.titles[0].is_stopped
    rig.run()

    assert [job.done for job in rig.titles] == [0, 3]


def test_titles_wait_while_on_battery_and_do_not_keep_the_loop_awake() -> None:
    rig = IdlerRig(on_battery=True)
    rig.make_title(A)
    rig.run()
    assert rig.titles == []

    rig.on_battery = False
    rig.idler.step()
    rig.idler.step()
    rig.on_battery = True
    rig.run()
    assert [job.is_stopped for job in rig.titles] == [True]


def test_titles_are_made_while_reading_ahead_is_off() -> None:
    rig = IdlerRig(enabled=False)
    rig.make_title(A)
    rig.run()

    assert len(rig.titles) == 1


def test_withdrawn_titles_are_answered_whether_queued_or_running() -> None:
    rig = IdlerRig(num_pieces=3)
    asked = [rig.make_title(B), rig.make_title(A)]
    rig.idler.step()
    for question_id in reversed(asked):
        rig.idler.withdraw(question_id)
    assert rig.titles[0].is_stopped
    rig.run()

    assert [job.conversation_id for job in rig.titles] == [A]
    assert rig.answers == dict.fromkeys(asked, False)


def test_every_question_for_a_title_is_answered_once() -> None:
    """Questions are replaced, crowded out, interrupted, refused and answered."""
    rig = IdlerRig(num_pieces=2)
    replaced, again = rig.make_title(A), rig.make_title(A)
    crowded = [rig.make_title(ConversationId(str(number))) for number in range(33)]
    last = rig.make_title(A)
    rig.idler.step()
    rig.idler.pause()
    rig.run()
    rig.idler.worker = IdleWorker(rig.read_ahead, rig.audit)
    refused = rig.make_title(B)
    rig.run()

    assert rig.answers[last]
    assert {one for one, is_made in rig.answers.items() if not is_made} == {
        replaced,
        again,
        *crowded[:2],
        refused,
    }
    assert set(rig.answers) == {replaced, again, *crowded, last, refused}


def test_answer_of_a_conversation_keeps_its_queued_title() -> None:
    rig = IdlerRig()
    rig.make_title(A)
    rig.idler.drop_read_ahead(A)  # as after each answer
    rig.run()

    assert len(rig.titles) == 1


def test_title_is_dropped_if_the_model_makes_none() -> None:
    rig = IdlerRig()
    rig.idler.worker = IdleWorker(rig.read_ahead, rig.audit)
    rig.make_title(A)
    rig.run()

    assert rig.titles == []


def test_task_that_displaces_may_evict_for_a_conversation_out_of_sight() -> None:
    rig = IdlerRig()
    rig.want(shown=A)
    for one in (task(A), task(B), replace(task(C), displaces=True)):
        rig.idler.queue_read_ahead(one)
    rig.run()
    assert sorted(rig.displacing) == [A, C]


def test_draft_waits_for_the_end_of_battery_power() -> None:
    rig = IdlerRig(on_battery=True)
    rig.idler.queue_read_ahead(task(B, is_draft=True))
    rig.run()
    assert not rig.order
    rig.on_battery = False
    rig.run()
    assert rig.order == [B]


# Previews


def test_preview_comes_after_the_shown_conversation_and_before_all_other_work() -> None:
    rig = IdlerRig(num_pieces=2)
    rig.want(shown=A)
    rig.make_title(C)
    rig.idler.queue_read_ahead(task(B))
    rig.idler.queue_read_ahead(task(A))
    rig.make_preview(A)
    rig.run()

    kinds = [event.kind for event in rig.events if isinstance(event, IdleWorking)]
    assert kinds == [
        kind
        for kind in (IdleKind.READ_AHEAD, IdleKind.PREVIEW, IdleKind.READ_AHEAD, IdleKind.TITLE)
        for _ in range(2)
    ]
    assert rig.waits == [PreviewStage.CHAT]


def test_preview_interrupts_a_title_and_another_conversations_read_ahead() -> None:
    rig = IdlerRig(num_pieces=3)
    rig.make_title(A)
    rig.idler.step()
    rig.make_preview(A)
    rig.idler.step()
    assert rig.titles[0].is_stopped
    rig.run()

    assert [job.done for job in rig.previews] == [3]
    assert rig.waits == []


def test_preview_waits_for_requests_and_for_power_and_says_why_once() -> None:
    rig = IdlerRig(num_pieces=3)
    rig.make_preview(A)
    rig.idler.step()
    for _ in range(3):
        rig.idler.make_way()
    assert rig.previews[0].is_stopped
    rig.on_battery = True
    rig.run()
    assert rig.waits == [PreviewStage.ANSWERS, PreviewStage.BATTERY]
    assert rig.idler.work_in_s == ASK_EVERY_S

    rig.on_battery = False
    rig.run()
    assert [job.done for job in rig.previews] == [0, 3]


def test_newer_preview_replaces_the_older_one_of_any_conversation() -> None:
    rig = IdlerRig(num_pieces=3)
    first = rig.make_preview(A)
    rig.idler.step()
    second = rig.make_preview(B)
    rig.run()

    assert rig.answers == {first: False, second: True}
    assert rig.previews[0].is_stopped


def test_failed_step_of_a_preview_is_answered_with_a_refusal() -> None:
    rig = IdlerRig(num_pieces=3)
    rig.make_preview(A)
    rig.idler.step()
    rig.previews[0].fails = True
    rig.run()

    (answer,) = [event.answer for event in rig.events if isinstance(event, Answered)]
    assert isinstance(answer, Preview)
    assert answer.refusal is not None
