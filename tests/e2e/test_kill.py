"""kill -9 of the app while an answer streams: at most the last second of text may be lost."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

import pytest

from app.conversation.tree import MessageStatus, NodeId
from app.paths import make_paths
from app.store.conversations import open_store
from engine.events import Shutdown
from engine.types import ConversationId, Role
from tests.e2e.costly_reading import MESSAGE
from tests.fakes.asking import ask, reply_of, user
from tests.fakes.engine_fixtures import OpenTiny, TinyModel
from tests.fakes.tiny_model import Template

ROOT = Path(__file__).parents[2]
DRIVER = Path(__file__).with_name("streaming_app.py")
READER = Path(__file__).with_name("costly_reading.py")
SAVED_WITHIN_S = 1.0
SAVED_WITHIN_BUSY_S = 3.0  # beside other work, as in `make test`


@dataclass(frozen=True)
class Streamed:
    """The length of a reply that the app printed at the time `at` (time.monotonic())."""

    at: float
    conversation: str
    reply: str
    length: int


def stream_and_kill(data_dir: Path, model: Path, seconds: float) -> tuple[list[Streamed], float]:
    """Run the app and kill it some seconds after its first text.

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
        lines = [app.stdout.readline()]
        assert lines[0], "the app ended by itself"
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            lines.append(app.stdout.readline())
        app.kill()
        killed_at = time.monotonic()
        lines += app.stdout.readlines()
    whole = [line.split() for line in lines if line.endswith("\n")]
    return [Streamed(float(a), c, r, int(n)) for a, c, r, n in whole], killed_at


def check_survivors(
    data_dir: Path, shown: list[Streamed], killed_at: float, within_s: float
) -> None:
    """Assert that all text printed `within_s` seconds before the kill is stored.

    No stored reply may have the status STREAMING."""
    opened = open_store(make_paths(data_dir).database, now=time.time())
    try:
        assert opened.problem is None
        due = {one.reply: one for one in shown if one.at <= killed_at - within_s}
        for one in due.values():
            saved = opened.store.load(ConversationId(one.conversation)).nodes[NodeId(one.reply)]
            assert len(saved.content) + len(saved.reasoning) >= one.length
        for summary in opened.store.summaries():
            for node in opened.store.load(summary.conversation_id).nodes.values():
                assert node.status is not MessageStatus.STREAMING
                assert node.role is Role.ASSISTANT or node.content
    finally:
        opened.store.close()


@pytest.mark.slow
def test_two_kills_while_streaming_lose_at_most_the_newest_text(
    tiny_model: TinyModel, tmp_path: Path
) -> None:
    model = tiny_model("lfm2", Template.KEEPING)
    for seconds in (0.1, 3.5):
        shown, killed_at = stream_and_kill(tmp_path, model, seconds)
        assert max(one.length for one in shown) > 0
        check_survivors(tmp_path, shown, killed_at, SAVED_WITHIN_BUSY_S)


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
    """Kill the app `rounds` times on one data folder. Return the number of rounds without loss."""
    rng = random.Random(1)
    return sum(_survives(data_dir, model, rng.uniform(0.0, 4.0)) for _ in range(rounds))


def _survives(data_dir: Path, model: Path, seconds: float) -> bool:
    try:
        check_survivors(data_dir, *stream_and_kill(data_dir, model, seconds), SAVED_WITHIN_S)
    except AssertionError:
        traceback.print_exc()
        return False
    return True
