"""Tests that kill a process with kill -9 at random moments while it saves streamed text.

Run as a program, this module kills 30 processes, one after another.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from app.conversation.tree import MessageStatus, shown_path
from app.store.conversations import open_store
from app.store.opening import open_database
from engine.types import ConversationId
from tests.app.store.crash_writer import text_of

ROOT = Path(__file__).parents[3]
WRITER = Path(__file__).with_name("crash_writer.py")


@pytest.mark.parametrize("seed", range(3))
def test_killed_writer_loses_no_saved_text(tmp_path: Path, seed: int) -> None:
    _kill_and_check(tmp_path / "conversations.db", seed)


def _kill_and_check(path: Path, seed: int) -> None:
    turn, length = _write_until_killed(path, seed)
    opened = open_database(path)
    with closing(opened.database) as database:
        assert opened.kept_aside is None
        assert database.rows("PRAGMA integrity_check") == [("ok",)]
    with closing(open_store(path, now=0.0).store) as store:
        conv = store.load(ConversationId("A"))
    conv.check_invariants()
    replies = shown_path(conv)[1::2]
    assert len(replies) in {turn + 1, turn + 2}, "every reported turn must be stored"
    for number, reply in enumerate(replies):
        assert reply.content == text_of(number, len(reply.content))
        assert reply.status in {MessageStatus.COMPLETE, MessageStatus.STOPPED}
    assert len(replies[turn].content) >= length, "all text reported as saved must be stored"


def _write_until_killed(path: Path, seed: int) -> tuple[int, int]:
    """Kill the writer after some saves. Return the last turn and text length that it printed."""
    num_saves = random.Random(seed).randrange(1, 400)
    with subprocess.Popen(
        [sys.executable, WRITER, path, str(seed)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as writer:
        assert writer.stdout is not None
        reports = [writer.stdout.readline() for _ in range(num_saves)]
        writer.kill()  # the writer saves without a pause, so the kill interrupts a save
        reports += writer.stdout.readlines()
    whole = [line for line in reports if line.endswith("\n")]
    turn, length = whole[-1].split()
    return int(turn), int(length)


if __name__ == "__main__":
    for round_number in range(30):
        with tempfile.TemporaryDirectory() as folder:
            _kill_and_check(Path(folder) / "conversations.db", round_number)
    sys.stdout.write("30 of 30 killed writers left an intact database\n")
