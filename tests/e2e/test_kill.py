"""kill -9 of the app while an answer streams: only the text since the last save may be lost."""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from app.conversation.tree import MessageStatus
from app.paths import make_paths
from app.store.conversations import open_store
from engine.events import Shutdown
from engine.types import Role
from tests.e2e.costly_reading import MESSAGE
from tests.fakes.asking import ask, reply_of, user
from tests.fakes.engine_fixtures import OpenTiny, TinyModel
from tests.fakes.tiny_model import Template

ROOT = Path(__file__).parents[2]
DRIVER = Path(__file__).with_name("streaming_app.py")
READER = Path(__file__).with_name("costly_reading.py")
MAX_ANSWERS = 20  # about half of the answers last until their first save
SAVED_WITHIN_S = 1.0  # longest time from the arrival of text to its save, on a machine at rest


@dataclass(frozen=True)
class Streamed:
    """The length of a reply that the app printed at the time `at` (time.monotonic())."""

    at: float
    conversation: str
    reply: str
    length: int


def stream_and_kill(
    data_dir: Path, model: Path, is_time: Callable[[], bool]
) -> tuple[list[Streamed], float]:
    """Run the app. Kill it as soon as `is_time`, called after each text, returns True.

    Return the lengths that the app printed, and the time.monotonic() of the kill.
    """
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "QT_QPA_PLATFORM": "offscreen"}
    with subprocess.Popen(
        [sys.executable, DRIVER, data_dir, model],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ) as app:
        assert app.stdout is not None
        assert app.stdout.readline() == "READY\n"
        lines: list[str] = []
        try:
            while not (lines and is_time()):
                lines.append(app.stdout.readline())
                assert lines[-1], "the app ended by itself"
        finally:
            app.kill()
            killed_at = time.monotonic()
        lines += app.stdout.readlines()
    whole = [line.split() for line in lines if line.endswith("\n")]
    return [Streamed(float(a), c, r, int(n)) for a, c, r, n in whole], killed_at


def check_survivors(data_dir: Path, due: Mapping[str, int]) -> None:
    """Assert that replies have at least the lengths in `due`.

    No stored reply may have the status STREAMING."""
    opened = open_store(make_paths(data_dir).database, now=time.time())
    try:
        assert opened.problem is None
        lengths: dict[str, int] = {}
        for summary in opened.store.summaries():
            for node in opened.store.load(summary.conversation_id).nodes.values():
                assert node.status is not MessageStatus.STREAMING
                assert node.role is Role.ASSISTANT or node.content
                lengths[node.node_id] = len(node.content) + len(node.reasoning)
        assert all(lengths[reply] >= length for reply, length in due.items())
    finally:
        opened.store.close()


@pytest.mark.slow
def test_kills_while_streaming_lose_no_text_that_was_saved(
    tiny_model: TinyModel, tmp_path: Path
) -> None:
    model = tiny_model("lfm2", Template.KEEPING)
    shown, _ = stream_and_kill(tmp_path, model, lambda: True)
    assert shown[0].length > 0
    check_survivors(tmp_path, {})

    saved: dict[str, int] = {}

    def is_saved() -> bool:
        replies = connection.execute(
            "SELECT node_id, length(content) + length(reasoning), status FROM messages"
            " WHERE role = 'assistant' AND status <> 'stopped'"
        ).fetchall()
        saved.update((reply, length) for reply, length, _status in replies)
        # Random weights may end an answer before its first save.
        ended = [reply for reply, _length, status in replies if status == "complete"]
        assert len(ended) < MAX_ANSWERS, "no answer was saved before its end"
        return any(length for _reply, length, status in replies if status == "streaming")

    database = make_paths(tmp_path).database
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        stream_and_kill(tmp_path, model, is_saved)
    check_survivors(tmp_path, saved)


@pytest.mark.slow
def test_kill_after_costly_reading_loses_nothing_of_it(
    tiny_model: TinyModel, open_tiny: OpenTiny, tmp_path: Path
) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, READER, tmp_path, tiny_model("mamba2", Template.KEEPING)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ) as app:
        assert app.stdout is not None
        assert app.stdout.readline() == "RESTS\n"
        app.kill()
    client = open_tiny("mamba2", disk_folder=tmp_path)
    answer = reply_of(ask(client, MESSAGE, side=True))
    plan = ask(client, MESSAGE, answer, user("more")).usage.plan
    client.send(Shutdown())
    client.core.run()
    assert plan.restored_disk == plan.restored > 0
    assert plan.replayed == 0


def kill_often(data_dir: Path, model: Path, rounds: int) -> int:
    """Kill the app `rounds` times on one data folder.

    Return the number of rounds in which all text was stored that had arrived SAVED_WITHIN_S before.
    """
    rng = random.Random(1)
    return sum(_survives(data_dir, model, rng.uniform(0.0, 4.0)) for _ in range(rounds))


def _survives(data_dir: Path, model: Path, seconds: float) -> bool:
    try:
        shown, killed_at = stream_and_kill(data_dir, model, _in_seconds(seconds))
        early = (one for one in shown if one.at <= killed_at - SAVED_WITHIN_S)
        check_survivors(data_dir, {one.reply: one.length for one in early})
    except AssertionError:
        traceback.print_exc()
        return False
    return True


def _in_seconds(seconds: float) -> Callable[[], bool]:
    """Return a condition that is true some seconds after its first call."""
    deadlines: list[float] = []

    def is_over() -> bool:
        deadlines.append(time.monotonic() + seconds)
        return time.monotonic() >= deadlines[0]

    return is_over
