from __future__ import annotations

from collections.abc import Iterator
from threading import Event

import pytest
from pytestqt.qtbot import QtBot

from app.bridge.jobs import Job, JobLane
from engine.problem import Problem, ProblemKind
from tests.fakes.ask_store import PATIENCE_S


@pytest.fixture
def lane(qapp: object) -> Iterator[JobLane]:
    lane = JobLane("jobs")
    yield lane
    lane.stop()


def work_until_stopped(job: Job) -> str:
    while True:
        job.report(0.5)
        job.stopped.wait(0.001)


def test_job_reports_its_progress_before_its_result(lane: JobLane, qtbot: QtBot) -> None:
    seen: list[object] = []

    def work(job: Job) -> str:
        job.report(0.5)
        return "made"

    lane.start(work, seen.append, seen.append, seen.append)

    qtbot.waitUntil(lambda: len(seen) == 2)
    assert seen == [0.5, "made"]


def test_stopped_job_fails_and_the_next_one_runs(lane: JobLane, qtbot: QtBot) -> None:
    problems: list[Problem] = []
    made: list[str] = []
    shares: list[float] = []
    job = lane.start(work_until_stopped, made.append, problems.append, shares.append)
    lane.start(lambda _job: "made", made.append, problems.append)
    qtbot.waitUntil(lambda: bool(shares))

    job.stop()

    qtbot.waitUntil(lambda: bool(made))
    assert made == ["made"]
    assert [problem.kind for problem in problems] == [ProblemKind.STOPPED]


def test_stop_of_the_lane_ends_running_and_waiting_jobs(qtbot: QtBot) -> None:
    lane, began = JobLane("jobs"), Event()

    def work(job: Job) -> str:
        began.set()
        return work_until_stopped(job)

    jobs = [lane.start(work, lambda _made: None, lambda _problem: None) for _ in range(2)]
    began.wait()

    lane.stop()

    assert all(job.stopped.is_set() for job in jobs)


def test_stop_ends_what_the_work_of_a_job_waits_for(lane: JobLane, qtbot: QtBot) -> None:
    ended, problems = Event(), list[Problem]()

    def work(job: Job) -> str:
        assert ended.wait(PATIENCE_S)
        job.require_running()
        return "made"

    job = lane.start(work, lambda _made: None, problems.append, on_stop=ended.set)

    job.stop()

    qtbot.waitUntil(lambda: bool(problems))
    assert problems[0].kind is ProblemKind.STOPPED
