from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from pytestqt.qtbot import QtBot

from app.bridge.tasks import TaskLane
from engine.errors import DiskError
from engine.problem import Problem
from tests.fakes.ask_store import PATIENCE_S


@pytest.fixture
def lane(qtbot: QtBot) -> Iterator[TaskLane]:
    lane = TaskLane("test")
    yield lane
    lane.stop()


def test_lane_runs_calls_in_order_on_one_thread(lane: TaskLane, qtbot: QtBot) -> None:
    threads: list[int] = []
    results: list[int] = []
    here = threading.get_ident()

    def work(number: int) -> int:
        threads.append(threading.get_ident())
        return number

    def deliver(number: int) -> None:
        assert threading.get_ident() == here
        results.append(number)

    for number in range(20):
        lane.run(lambda number=number: work(number), deliver)
    qtbot.waitUntil(lambda: len(results) == 20)
    assert results == list(range(20))
    assert len(set(threads)) == 1
    assert here not in threads


def test_error_is_delivered_to_error_handler_of_call(lane: TaskLane, qtbot: QtBot) -> None:
    problems: list[Problem] = []

    def fail() -> None:
        raise DiskError("The disk is full.")

    lane.run(fail, None, problems.append)
    qtbot.waitUntil(lambda: bool(problems))
    assert problems[0].cause == "The disk is full."


def test_error_without_handler_is_emitted_and_logged(
    lane: TaskLane, qtbot: QtBot, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise ZeroDivisionError("nobody saw this coming")

    problems: list[Problem] = []
    lane.failed.connect(problems.append)
    lane.run(fail)
    qtbot.waitUntil(lambda: bool(problems))
    assert problems[0].title == "Rejoinder made a mistake."
    assert "nobody saw this coming" in problems[0].cause
    assert "a background call failed" in caplog.text


def test_stop_runs_queued_calls_and_delivers_no_results(qtbot: QtBot) -> None:
    lane = TaskLane("test")
    done: list[int] = []
    delivered: list[int] = []
    for number in range(5):
        lane.run(lambda number=number: done.append(number), lambda _none: delivered.append(1))
    lane.stop()
    lane.stop()
    lane.run(lambda: done.append(99))
    qtbot.wait(5)
    assert done == list(range(5))
    assert delivered == []


def test_steps_begin_only_when_no_call_waits(lane: TaskLane, qtbot: QtBot) -> None:
    done: list[str] = []
    results: list[int] = []
    begun, may_end = threading.Event(), threading.Event()

    def step() -> int | None:
        begun.set()
        assert may_end.wait(PATIENCE_S)
        done.append("step")
        return len(done) if len(done) > 6 else None

    lane.run_aside(step, results.append)
    lane.run_aside(step, results.append)  # its first step is queued before the calls
    assert begun.wait(PATIENCE_S)
    for _ in range(5):
        lane.run(lambda: done.append("call"))
    may_end.set()

    qtbot.waitUntil(lambda: results == [7, 8])
    assert done == ["step", *["call"] * 5, "step", "step"]


def test_step_that_fails_is_the_last_one(lane: TaskLane, qtbot: QtBot) -> None:
    problems: list[Problem] = []

    def fail() -> int | None:
        raise DiskError("The disk is full.")

    lane.run_aside(fail, None, problems.append)
    qtbot.waitUntil(lambda: bool(problems))
    qtbot.wait(5)
    assert len(problems) == 1


def test_stopped_lane_makes_no_more_steps(qtbot: QtBot) -> None:
    lane = TaskLane("test")
    done: list[int] = []
    begun = threading.Event()

    def step() -> int | None:
        done.append(1)
        begun.set()
        return None

    lane.run_aside(step)
    assert begun.wait(PATIENCE_S)
    lane.stop()
    num_done = len(done)
    qtbot.wait(5)
    assert len(done) == num_done
