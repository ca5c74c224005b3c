"""The window, and the commands of the terminal, on a model in two real stages.

    python -m tests.soak window=10

`answer_in_window` drives a window as a user does: it loads, answers, is stopped, loses a stage, starts
again and is closed. `play_windows` also kills the app and `rejoinder bench tree`. No process may be left.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import psutil
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from app.conversation.tree import Setup
from app.viewmodels.models import ModelPhase
from app.viewmodels.transcript import ItemStatus
from app.widgets.application import Application
from app.widgets.commands import CommandId
from app.words import several as words
from engine.hosts.hostfile import local_stages
from tests.fakes.app_process import environment
from tests.fakes.ask_store import PATIENCE_S
from tests.fakes.real_window import RealWindow
from tests.fakes.staged import is_stage
from tests.fakes.tiny_model import Template, build_tiny

START_S = 180.0  # a start may be slow on a busy machine
LEFT_S = 3.0  # time in which all processes must have ended


def stages_below(pid: int) -> list[psutil.Process]:
    """Return the processes of stages that a process has started."""
    found = psutil.Process(pid).children(recursive=True)
    return [one for one in found if is_stage(one)]


def num_left(processes: list[psutil.Process], within_s: float) -> int:
    """Return the number of processes that do not end within some seconds."""
    return len(psutil.wait_procs(processes, timeout=within_s)[1])


def answer_in_window(
    folder: Path, model: Path, *, num_kills: int, max_tokens: int | None = None
) -> None:
    """Answer, stop an answer, kill a stage during answers and start again, then close the window."""
    with closing(StagesWindow(folder, hosts=local_stages(2))) as window:
        window.launch(model)
        window.await_ready()
        window.limit_answers(model, Setup(max_tokens=max_tokens))
        stages = stages_below(os.getpid())
        assert len(stages) == 2
        window.require_answer("What is a small boat?")
        window.ask("Tell me a story")
        window.wait_until(lambda: bool(window.core.turns.live))
        window.run(CommandId.STOP)
        window.await_end()
        window.require_answer("Are you still there?")
        for number in range(num_kills):
            stages += window.lose_a_stage(rank=number % 2)
        assert window.core.models.status.num_machines == 1
    assert num_left(stages, PATIENCE_S) == 0


class StagesWindow(RealWindow):
    """A window on a model in stages."""

    def await_ready(self) -> None:
        ended = (ModelPhase.READY, ModelPhase.FAILED)
        self.wait_until(lambda: self.core.models.status.phase in ended, START_S)
        assert self.core.models.status.phase is ModelPhase.READY, self.core.models.status

    def await_end(self) -> None:
        self.wait_until(lambda: not self.core.turns.live)

    def require_answer(self, text: str) -> None:
        """Ask in a new chat, and wait for a complete answer."""
        self.ask(text)
        self.await_end()
        # Random weights may end an answer at once, but not with a problem.
        assert self.items[-1].status is ItemStatus.COMPLETE, self.items[-1]

    def stream(self, text: str) -> None:
        """Ask until an answer is being written. Random weights may end one early."""
        for number in range(50):
            self.ask(f"{text} {number}")
            self.wait_until(lambda: bool(self.num_at_once) or self._has_ended())
            if self.num_at_once:
                return
        raise AssertionError("every answer ended at once")

    def _has_ended(self) -> bool:
        return (
            bool(self.items)
            and self.items[-1].status is ItemStatus.COMPLETE
            and not self.core.turns.live
        )

    def lose_a_stage(self, rank: int) -> list[psutil.Process]:
        """Kill a stage while an answer streams, then click Start Again. Return the new stages."""
        self.stream(f"Tell me more {rank}")
        process = sorted(stages_below(os.getpid()), key=lambda one: one.pid)[rank]
        before = self.texts[-1].rstrip("\ufffd")  # marks an incomplete character at the end
        process.kill()
        notice = self.pane.notice
        self.wait_until(notice.isVisible)
        assert f"Stage {rank + 1} of 2 stopped." in notice.text
        assert self.texts[-1].startswith(before), "the answer so far is gone"
        assert notice.button.text() == words.START_AGAIN
        QTest.mouseClick(notice.button, Qt.MouseButton.LeftButton)
        self.await_ready()
        self.require_answer("Are you back?")
        return stages_below(os.getpid())


def play_windows(folder: Path, number: int) -> bool:
    """Drive a window, then kill the app and `bench tree` a number of times each."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    app = Application(sys.argv[:1])
    model = build_tiny("qwen3_5", folder / "model", Template.KEEPING)
    answer_in_window(folder / "data", model, num_kills=number)
    del app
    print(f"the window answered after each of {number} lost stages", flush=True)
    held = _plays_tree(model)
    for turn in range(number):
        signal_number = signal.SIGTERM if turn % 2 else signal.SIGKILL
        held &= _ends_with(["--model", str(model), "--stages", "2"], folder, signal_number)
        held &= _ends_with(["bench", "tree", *_tree_options(model)], folder, signal_number)
    return held


def _tree_options(model: Path) -> list[str]:
    return ["--model", str(model), "--stages", "2", "--size", "0.05", "--cold", "0", "--json"]


def _plays_tree(model: Path) -> bool:
    """Run `rejoinder bench tree` over two stages. Return True if no step feeds a token twice."""
    command = [sys.executable, "-P", "-m", "app", "bench", "tree", *_tree_options(model)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in ended.stdout.splitlines()]
    held = ended.returncode == 0 and bool(lines) and "total" in lines[-1]
    print(f"bench tree over two stages: {'held' if held else 'BROKEN'}, {lines[-1:]}", flush=True)
    return held


def _ends_with(arguments: list[str], folder: Path, signal_number: signal.Signals) -> bool:
    """Signal a command once its stages hold the model. Return True if no stage is left."""
    data = ["--data-dir", str(folder / "killed")]
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "app", *arguments, *data],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment(folder),
    ) as starter:
        stages = _joined_stages(starter)
        threading.Event().wait(1.0)
        starter.send_signal(signal_number)
        starter.wait(30)
        left = num_left(stages, LEFT_S)
    held = len(stages) == 2 and not left
    title = arguments[0] if arguments[0] == "bench" else "the app"
    print(
        f"{'held' if held else 'BROKEN'}  {signal_number.name} of {title}: {len(stages)} stages, {left} left",
        flush=True,
    )
    return held


def _joined_stages(starter: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """Wait until a starter has two stages whose ring is connected. Return them."""
    until = time.monotonic() + START_S
    while time.monotonic() < until and starter.poll() is None:
        stages = stages_below(starter.pid)
        if len(stages) == 2 and all(_is_connected(stage) for stage in stages):
            return stages
        threading.Event().wait(0.1)
    return []


def _is_connected(stage: psutil.Process) -> bool:
    return any(one.status == psutil.CONN_ESTABLISHED for one in stage.net_connections("tcp"))
