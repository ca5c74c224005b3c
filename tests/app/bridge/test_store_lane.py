from __future__ import annotations

from contextlib import closing
from functools import partial
from pathlib import Path

from pytestqt.qtbot import QtBot

from app.bridge.jobs import Job, JobLane
from app.bridge.store_lane import StoreLane
from app.store.conversations import ConversationStore, open_store
from app.store.opening import open_database
from engine.problem import Problem, ProblemKind
from tests.fakes.conversations import ConversationWriter
from tests.fakes.full_disk import full_disk


def test_messages_of_an_old_database_are_indexed_after_the_opening(
    qtbot: QtBot, tmp_path: Path
) -> None:
    path = tmp_path / "conversations.db"
    writer = ConversationWriter()
    for number in range(300):
        writer.send(f"apple {number}")
    with closing(open_database(path).database) as database:
        ConversationStore(database).create(writer.conv)
        # This is the state after the migration of a database of an earlier version.
        database.run("INSERT INTO message_search (message_search) VALUES ('delete-all')")
        database.run("UPDATE search_progress SET last = (SELECT max(message_number) FROM messages)")
    lane = StoreLane(partial(open_store, path, now=0.0))
    found: list[int] = []

    def has_all() -> bool:
        lane.run(_num_apples, found.append)
        return found[-1:] == [300]

    lane.open()
    qtbot.waitUntil(has_all)
    lane.close()


def _num_apples(store: ConversationStore) -> int:
    return sum(len(group.hits) for group in store.search.find("apple", limit=1000))


def test_store_becomes_writable_when_the_disk_has_room_again(qtbot: QtBot, tmp_path: Path) -> None:
    path = tmp_path / "conversations.db"
    writer = ConversationWriter()
    writer.send("apple")
    with closing(open_store(path, now=0.0).store) as store:
        store.create(writer.conv)
    lane = StoreLane(partial(open_store, path, now=0.0))
    problems: list[Problem] = []
    lane.became_read_only.connect(problems.append)
    loaded: list[object] = []
    with full_disk():
        lane.open()
        lane.load(writer.conv.conversation_id, loaded.append, loaded.append)
        qtbot.waitUntil(lambda: len(loaded) == 1)
    assert loaded == [writer.conv]
    assert "full" in problems[0].title

    with qtbot.waitSignal(lane.became_writable):
        writer.send("pear")
        lane.save(writer.conv, loaded.append, loaded.append)
    qtbot.waitUntil(lambda: len(loaded) == 2)

    lane.close()
    with closing(open_store(path, now=0.0).store) as store:
        assert store.load(writer.conv.conversation_id) == writer.conv


def test_stopped_job_makes_no_more_steps_and_the_store_stays_usable(
    qtbot: QtBot, tmp_path: Path
) -> None:
    lane, jobs = StoreLane(partial(open_store, tmp_path / "a.db", now=0.0)), JobLane("jobs")
    lane.open()
    seen: list[object] = []
    num_steps = 0

    def step(job: Job) -> str | None:
        nonlocal num_steps
        num_steps += 1
        if num_steps == 2:
            job.stop()
        return None

    jobs.start(
        lambda job: lane.call_in_job(job, lambda _store: step(job)), seen.append, seen.append
    )
    jobs.start(lambda job: lane.call_in_job(job, _num_apples), seen.append, seen.append)

    qtbot.waitUntil(lambda: len(seen) == 2)
    problem, num_apples = seen
    assert isinstance(problem, Problem)
    assert problem.kind is ProblemKind.STOPPED
    assert (num_steps, num_apples) == (2, 0)
    jobs.stop()
    lane.close()
