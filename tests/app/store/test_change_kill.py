"""Tests that kill a process with kill -9 while it imports, answers, edits, attaches, deletes and moves.

Every change that was reported as done must be there, and the one that was running must be there
wholly or not at all. `python -m tests.soak changes=100` kills a hundred processes, one after another,
on one data folder.
"""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from threading import Event

import pytest

from app.store.backups import backups_of
from app.store.conversations import ConversationStore
from app.store.place import DataPlace
from engine.types import ConversationId
from tests.app.store.change_writer import NOON, state_of

ROOT = Path(__file__).parents[3]
WRITER = Path(__file__).with_name("change_writer.py")
GONE = ("deleted", "removed")


def kill_and_check(home: Path, run: str, expected: dict[str, str]) -> str:
    """Kill a process that changes a data folder, and check what it left.

    `expected` has the state of each chat: state_of(), "deleted" or "removed". It is updated. Return
    the kind of the change that was interrupted.
    """
    lines = _change_until_killed(home, run)
    running = ""
    kind = "nothing"
    for line in lines:
        word, kind, name, state = line.split()
        if word == "did" and name != "-":
            expected[name] = state
        running = "" if word == "did" else f"{name} {state}"
    place = DataPlace(home)
    opened = place.open(now=NOON)
    with closing(opened.store) as store:
        assert opened.problem is None
        _check_chats(store, expected, running)
    place.release()
    for file in (place.database, *backups_of(place.database)):
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as database:
            assert database.execute("PRAGMA quick_check").fetchall() == [("ok",)], file
    return kind if running else "nothing"


def _check_chats(store: ConversationStore, expected: dict[str, str], running: str) -> None:
    deleted = {one.summary.conversation_id for one in store.deleted()}
    listed = {one.conversation_id for one in store.summaries()}
    name, _, state = running.partition(" ")
    for chat in {*expected, *([name] if name not in {"", "-"} else [])}:
        key = ConversationId(chat)
        found = "removed"
        if key in deleted:
            found = "deleted"
        elif key in listed:
            conv = store.load(key)
            conv.check_invariants()
            found = state_of(conv)
        allowed = {expected.get(chat, "removed")}
        if chat == name:
            # The removal of a chat deletes it first.
            allowed |= {state} if state != "removed" else set(GONE)
        assert found in allowed, f"{chat}: {found}, not {allowed}"
        expected[chat] = found
    assert listed | deleted <= {ConversationId(chat) for chat in expected}


def _change_until_killed(home: Path, run: str) -> list[str]:
    rng = random.Random(run)
    with subprocess.Popen(
        [sys.executable, WRITER, home, run],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as writer:
        assert writer.stdout is not None
        lines = [writer.stdout.readline() for _ in range(rng.randrange(1, 80))]
        Event().wait(rng.uniform(0, 0.02))
        assert writer.poll() is None, "the writer ended by itself"
        writer.kill()
        lines += writer.stdout.readlines()
    return [line for line in lines if line.endswith("\n")]


@pytest.mark.slow
@pytest.mark.parametrize("run", ["a", "b", "c"])
def test_killed_changes_are_there_wholly_or_not_at_all(tmp_path: Path, run: str) -> None:
    expected: dict[str, str] = {}
    for number in range(2):
        kill_and_check(tmp_path, f"{run}{number}", expected)


def kill_changes(home: Path, number: int) -> bool:
    """Kill processes on one data folder, and print what they were doing."""
    home.mkdir(parents=True, exist_ok=True)
    expected: dict[str, str] = {}
    kinds = [kill_and_check(home, f"k{at}", expected) for at in range(number)]
    print({kind: kinds.count(kind) for kind in sorted(set(kinds))}, f"{len(expected)} chats")
    return len(kinds) == number
