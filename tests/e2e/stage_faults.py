"""Faults of the stages of a divided model, at random moments, and what a user has afterwards.

    python -m tests.soak stages=100

Each trial harms one of two stages. Then: a sentence that names the stage comes in time, no process is
left, and after another LoadModel the same question gets the same answer.
"""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from unittest.mock import patch

import psutil

from engine.events import (
    ModelFailed,
    ModelLoaded,
    RequestFinished,
    RequestStarted,
    StagePhase,
    StagesReported,
    TextDelta,
)
from engine.hosts import group
from engine.hosts.group import Limits
from engine.hosts.hostfile import Host, local_stages
from engine.hosts.process import stage_command
from engine.problem import Problem
from engine.worker.interpreter import own_program
from tests.fakes.ask_store import PATIENCE_S
from tests.fakes.short_stage import raised_at
from tests.fakes.staged import LONG, LONG_TEXT, StagedRig
from tests.fakes.tiny_model import Template, build_tiny

DEATH_S, SILENCE_S, LEFT_S = 2.0, 12.0, 3.0


class Fault(StrEnum):
    """A way to harm one stage."""

    KILL = "kill"
    STOP = "stop"
    EXIT = "exit 0"
    MEMORY = "out of memory"  # MLX cannot allocate (tests/fakes/short_stage.py)
    LIMIT = "address space"  # the system gives the process no more memory


class Moment(StrEnum):
    """The work of the stages at the time of the fault."""

    LOADING = "loading"
    PREFILL = "prefill"
    DECODE = "decode"
    RESTORE = "restore"
    REST = "rest"


_OF_MEMORY = {
    Fault.MEMORY: (Moment.LOADING, Moment.PREFILL, Moment.DECODE),
    Fault.LIMIT: (Moment.PREFILL, Moment.DECODE),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One fault."""

    fault: Fault
    moment: Moment
    rank: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of a trial."""

    trial: Trial
    problem: Problem
    seconds: float  # from the fault to the sentence
    num_left: int  # processes of the stages that did not end
    left_s: float  # from the sentence to the end of these processes
    is_right: bool  # the next answer is the same as before

    @property
    def is_in_time(self) -> bool:
        """True if the sentence and the end of the stages came as soon as on an idle machine."""
        limit_s = SILENCE_S if self.trial.fault is Fault.STOP else DEATH_S
        # A stage without address space may raise an error or end at once, some passes later.
        is_told = self.seconds <= limit_s or self.trial.fault is Fault.LIMIT
        return is_told and self.left_s <= LEFT_S

    @property
    def holds(self) -> bool:
        is_named = f"stage {self.trial.rank + 1} of 2" in str(self.problem).lower()
        if self.trial.fault is Fault.MEMORY:
            is_named &= self.problem.title.endswith("ran out of memory.")
        return is_named and not self.num_left and self.is_right


def trials(seed: int) -> list[Trial]:
    """Return all kinds of faults in a random order."""
    found = [
        Trial(fault=fault, moment=moment, rank=rank)
        for fault in Fault
        for moment in Moment
        for rank in (0, 1)
        if fault not in _OF_MEMORY or (rank == 1 and moment in _OF_MEMORY[fault])
    ]
    random.Random(seed).shuffle(found)
    return found


class FaultRun:
    """Two stages of one model, harmed again and again."""

    def __init__(self, model: Path) -> None:
        self._model = model
        self._shortage = model.parent / "shortage"  # the file of tests/fakes/short_stage.py
        self._command = patch.object(group, "stage_command", self._command_of)
        self._command.start()
        limits = Limits(start_s=60.0, join_s=180.0)  # a start may be slow on a busy machine
        self.rig = StagedRig(local_stages(2), limits, idle_work=False)
        assert isinstance(self.rig.load(model), ModelLoaded)
        self._right = self._answer("reference")

    def close(self) -> None:
        self.rig.close()
        self._command.stop()

    def _command_of(self, host: Host, envs: Sequence[str], *words: str) -> list[str]:
        """Return the command of a stage. That of rank 1 can be out of memory."""
        if not host.name.startswith("stage 2"):
            return stage_command(host, envs, *words)
        return own_program("tests.fakes.short_stage", str(self._shortage), *(words or ("stage",)))

    def play(self, trial: Trial, number: int) -> Outcome:
        """Bring the stages to the moment, harm one, and start them again."""
        if trial.fault is Fault.MEMORY and trial.moment is Moment.LOADING:
            self._shortage.write_text("loading", encoding="utf-8")
        stages = self._reach(trial.moment, number)
        harmed_at = time.monotonic()
        self._harm(trial, stages)
        problem = self.rig.wait(ModelFailed, timeout_s=60).problem
        ended_at = time.monotonic()
        if trial.fault is Fault.MEMORY:
            # Until then the stage joined the others, or waited for its pass.
            harmed_at = float(raised_at(self._shortage).read_text(encoding="utf-8"))
        _, left = psutil.wait_procs(stages, timeout=PATIENCE_S)
        left_s = time.monotonic() - ended_at
        self._shortage.unlink(missing_ok=True)
        loaded = self.rig.load(self._model)
        assert isinstance(loaded, ModelLoaded), loaded
        return Outcome(
            trial=trial,
            problem=problem,
            seconds=ended_at - harmed_at,
            num_left=len(left),
            left_s=left_s,
            is_right=self._answer(f"again {number}") == self._right,
        )

    def _answer(self, name: str) -> tuple[int, ...]:
        self.rig.submit(name, chat=name)
        return self.rig.wait(RequestFinished, timeout_s=120).reply.token_ids

    def _reach(self, moment: Moment, number: int) -> list[psutil.Process]:
        rig, chat = self.rig, f"chat {number}"
        match moment:
            case Moment.LOADING:
                rig.reload(self._model)
                while not any(
                    one.phase is StagePhase.LOADING for one in rig.wait(StagesReported).stages
                ):
                    pass
            case Moment.PREFILL:
                rig.submit(f"long {number}", chat=chat, text=LONG_TEXT)
                rig.wait(RequestStarted)
            case Moment.DECODE:
                rig.submit(f"long {number}", chat=chat, forced=LONG)
                rig.wait(TextDelta)
            case Moment.RESTORE:
                rig.submit(f"first {number}", chat=chat)
                rig.wait(RequestFinished)
                rig.submit(f"second {number}", chat=chat, forced=LONG)
            case Moment.REST:
                threading.Event().wait(3.0)
        return rig.processes

    def _harm(self, trial: Trial, stages: list[psutil.Process]) -> None:
        process = stages[trial.rank]
        match trial.fault:
            case Fault.KILL:
                process.send_signal(signal.SIGKILL)
            case Fault.STOP:
                process.send_signal(signal.SIGSTOP)
            case Fault.EXIT:
                self.rig.end_input(trial.rank)
            case Fault.MEMORY:
                moment = "loading" if trial.moment is Moment.LOADING else "pass"
                self._shortage.write_text(moment, encoding="utf-8")
            case Fault.LIMIT:
                # Less than it has: each new mapping fails. The live caches of the answer need some.
                limit = process.memory_info().rss
                process.rlimit(psutil.RLIMIT_AS, (limit, limit))


def play_stage_faults(folder: Path, number: int) -> bool:
    """Play a number of random faults. Print each outcome. Return True if all hold."""
    model = build_tiny("qwen3_5", folder / "model", Template.KEEPING)
    run = FaultRun(model)
    held = 0
    try:
        for played in range(number):
            kinds = trials(seed=played // len(trials(0)))
            outcome = run.play(kinds[played % len(kinds)], played)
            is_held = outcome.holds and outcome.is_in_time
            held += is_held
            trial = outcome.trial
            print(
                f"{'held' if is_held else 'BROKEN'}  {trial.fault} of rank {trial.rank}"
                f" during {trial.moment}: {outcome.seconds:.2f} s, {outcome.num_left} left,"
                f" next answer {'right' if outcome.is_right else 'WRONG'}. {outcome.problem}",
                flush=True,
            )
    finally:
        run.close()
    print(f"faults of stages that held: {held} of {number}")
    return held == number
