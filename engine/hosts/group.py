"""The processes of a pipeline: started with limits of time, watched, and ended together.

A thread of this process reads the lines of all stages (lines.py):

    setup -> here, up     every stage runs, has chosen free ports, and has imported its libraries
    look  -> folder       the same model folder on every host (with more than one stage)
    plan  -> plan         rank 0 divides the layers
    join  -> ready        the group is formed, and the weights are in memory

The first fault ends all stages: a process that ended, 10 s without a sign of life, or two minutes
without progress. A stage that loses the connection to another one ends as well. The fault is then
that of the stage whose process ended without such a reason.
"""

from __future__ import annotations

import logging
import selectors
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from engine.config import GIVEN_SHARE, EngineConfig
from engine.events import StagePhase, StageState
from engine.hosts import faults
from engine.hosts.folder import difference
from engine.hosts.hostfile import Hosts
from engine.hosts.lines import LineKind
from engine.hosts.process import StageProcess, stage_command
from engine.hosts.wire import decode, encode
from engine.problem import Problem

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of time for the stages, in seconds."""

    start_s: float = 11.0  # from the start to the first line
    silent_s: float = 10.0  # without a line: a stage writes two a second
    join_s: float = 60.0  # from `join` to the first report of the weights
    progress_s: float = 120.0  # without a pass or a part of the weights, while there is work
    # After a lost connection, the time in which the process at its other end is seen to have ended.
    blame_s: float = 1.0
    look_s: float = 0.1  # longest time between two looks at the clock


class Group:
    """The stages of one model, from their start to the first fault or the end.

    Args:
        hosts: the stages.
        path: the model folder.
        config: the settings of the engine.
        limits: limits of time.
    """

    def __init__(self, hosts: Hosts, path: str, config: EngineConfig, limits: Limits) -> None:
        self._hosts = hosts
        self.path = path
        self._config = config
        self._limits = limits
        # This process keeps one end of the pair, rank 0 gets the other one.
        self.connection, self._far_end = socket.socketpair()
        self._far_descriptor = self._far_end.fileno()  # its number in rank 0 too
        self._stages: list[StageProcess] = []
        self._selector = selectors.DefaultSelector()
        self._closing = threading.Event()
        self._is_ending = False
        self._progressed = time.monotonic()  # time of the last progress of any stage
        self._joined: float | None = None  # time of `join`
        self._lost: float | None = None  # time at which the first connection was lost
        self._unreachable: list[subprocess.Popen[bytes]] = []  # ssh that ends a stopped stage
        self._thread: threading.Thread | None = None
        self._on_fault: Callable[[Problem], None] = lambda _: None
        self._on_change: Callable[[tuple[StageState, ...]], None] = lambda _: None
        self._shown: tuple[StageState, ...] = ()  # the last argument of on_change

    def start(
        self,
        on_fault: Callable[[Problem], None],
        on_change: Callable[[tuple[StageState, ...]], None],
    ) -> None:
        """Start the stages and the thread that watches them.

        Both functions are called on that thread: on_fault at most once, after all stages have
        ended, and on_change when the state of a stage changes.
        """
        self._on_fault, self._on_change = on_fault, on_change
        self._thread = threading.Thread(target=self._run, name="stages", daemon=True)
        self._thread.start()

    def note_loading(self, loaded_bytes: int, total_bytes: int) -> None:
        """Take the progress of rank 0, which its engine reports, also as that of its stage."""
        first = self._stages[0]
        first.loaded_bytes, first.total_bytes = loaded_bytes, total_bytes
        self._progressed = time.monotonic()

    def note_loaded(self) -> None:
        """Take rank 0 as ready, because its engine has loaded the model."""
        self._stages[0].phase = StagePhase.READY

    def keep_awake(self, *, on: bool) -> None:
        """Keep the machines from sleeping, or no longer."""
        for stage in list(self._stages):
            stage.order(LineKind.AWAKE, on=on)

    @property
    def has_joined(self) -> bool:
        """True once the stages got their jobs, so that rank 0 reads commands."""
        return self._joined is not None

    def expect_end(self) -> None:
        """Take the end of a stage as no fault from now on, because rank 0 is shut down."""
        self._is_ending = True

    def close(self) -> None:
        """End all stages and wait for their end. No fault is reported after this call."""
        self._closing.set()
        for stage in list(self._stages):
            stage.kill()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    # The thread "stages"

    def _run(self) -> None:
        try:
            problem = self._start_all() or self._watch()
        except Exception as error:
            log.exception("the stages could not be watched")
            problem = faults.StagesError(f"{type(error).__name__}: {error}.").problem
        is_reported = problem is not None and not self._closing.is_set()
        self._end_all()
        if is_reported:
            assert problem is not None
            log.warning("a stage failed: %s", problem)
            self._on_fault(problem)
        for one in self._unreachable:
            _await_end(one)

    def _start_all(self) -> Problem | None:
        for rank, host in enumerate(self._hosts.hosts):
            if self._closing.is_set():
                return None
            inherited = self._far_descriptor if rank == 0 else None
            command = stage_command(host, self._hosts.envs)
            try:
                stage = StageProcess(rank, host, command, inherited)
            except OSError as error:
                return faults.not_started(host, f"{error.strerror or error}.")
            self._stages.append(stage)
            stage.heard = time.monotonic()
            self._selector.register(stage.output, selectors.EVENT_READ, stage)
            stage.order(LineKind.SETUP, ips=host.ips, config=encode(self._config))
            # Rank 0 has its own descriptor. With another one here, its end would not close the
            # pair.
            self._far_end.close()
        return None

    def _watch(self) -> Problem | None:
        """Return the first fault, or None if the group is closed."""
        looked = time.monotonic()
        while not self._closing.is_set():
            for key, _ in self._selector.select(self._limits.look_s):
                problem = self._read(key.data)
                if problem is not None:
                    return problem
            now = time.monotonic()
            if now - looked > 1.0:
                self._forgive(now - looked)
            looked = now
            self._report_change()
            problem = self._overdue(now)
            if problem is not None:
                return problem
        return None

    def _report_change(self) -> None:
        states = tuple(stage.state for stage in self._stages)
        if states != self._shown:
            self._shown = states
            self._on_change(states)

    def _forgive(self, seconds: float) -> None:
        """Extend all limits, because this process itself did not run, as in a sleep of the Mac."""
        for stage in self._stages:
            stage.heard += seconds
        self._progressed += seconds
        if self._joined is not None:
            self._joined += seconds

    def _read(self, stage: StageProcess) -> Problem | None:
        lines = stage.read_lines()
        if lines is None:
            return self._on_end(stage)
        stage.heard = time.monotonic()
        for kind, fields in lines:
            problem = self._on_line(stage, kind, fields)
            if problem is not None:
                return problem
        return None

    def _on_end(self, stage: StageProcess) -> Problem | None:
        self._selector.unregister(stage.output)
        stage.has_ended = True
        status = stage.status(timeout_s=1.0)
        if stage.has_lost_peer or self._is_ending:
            return None  # the other end of a lost connection is to blame
        if stage.phase is StagePhase.STARTING:
            return faults.not_started(stage.host, stage.last_words)
        return faults.died(stage.host, status or 0, stage.last_words)

    def _on_line(
        self, stage: StageProcess, kind: LineKind, fields: dict[str, Any]
    ) -> Problem | None:
        match kind:
            case LineKind.HERE:
                return self._on_here(stage, fields)
            case LineKind.UP:
                stage.is_up = True
                return self._prepare()
            case LineKind.FOLDER:
                stage.folder = fields
                return self._prepare()
            case LineKind.PLAN:
                return self._on_plan(fields)
            case LineKind.WAKE:
                for other in self._stages[1:]:
                    other.order(LineKind.GO)
            case LineKind.PROBLEM:
                return self._on_problem(stage, fields)
            case _:
                if stage.note(kind, fields):
                    self._progressed = time.monotonic()
        return None

    def _on_here(self, stage: StageProcess, fields: dict[str, Any]) -> Problem | None:
        stage.phase, stage.facts = StagePhase.HERE, fields
        own = version("rejoinder")
        if fields["version"] != own:
            return faults.other_version(stage.host, fields["version"], own)
        if all(one.phase is StagePhase.HERE for one in self._stages):
            for one in self._stages:
                one.order(LineKind.LOOK, path=self.path)
        return None

    def _prepare(self) -> Problem | None:
        """Once all stages are up with the same folder, ask for the plan."""
        own = self._stages[0].folder
        if not all(one.is_up and one.folder for one in self._stages):
            return None
        for one in self._stages[1:]:
            assert own is not None
            assert one.folder is not None
            differs = difference(own, one.folder, self.path)
            if differs:
                return faults.other_folder(one.host, differs)
        self._ask_for_plan()
        return None

    def _ask_for_plan(self) -> None:
        """Let rank 0 divide the model by the memory of the hosts: that takes mlx."""
        if len(self._stages) == 1:
            self._join([1])
            return
        num_local = sum(stage.host.is_local for stage in self._stages)
        free = [
            round(stage.facts["total"] * GIVEN_SHARE) // (num_local if stage.host.is_local else 1)
            for stage in self._stages
        ]
        self._stages[0].order(LineKind.PLAN, path=self.path, free=free)

    def _on_plan(self, fields: dict[str, Any]) -> Problem | None:
        if "problem" in fields:
            return decode(Problem, fields["problem"])
        for stage, num_bytes in zip(self._stages, fields["bytes"], strict=True):
            stage.total_bytes = num_bytes
        self._join(fields["layers"])
        return None

    def _join(self, split: list[int]) -> None:
        """Give each stage its job. `split` has the number of layers of each rank."""
        addresses = [
            [
                _address(ip, port)
                for ip, port in zip(stage.host.ips, stage.facts["ports"], strict=True)
            ]
            for stage in self._stages
        ]
        self._joined = self._progressed = time.monotonic()
        for stage in self._stages:
            stage.phase, stage.num_layers = StagePhase.LOADING, split[stage.rank]
            stage.order(
                LineKind.JOIN,
                rank=stage.rank,
                path=self.path,
                layers=split,
                addresses=addresses,
                socket=self._far_descriptor if stage.rank == 0 else None,
            )

    def _on_problem(self, stage: StageProcess, fields: dict[str, Any]) -> Problem | None:
        if self._is_ending:
            return None
        if fields["has_lost_peer"]:
            stage.has_lost_peer = True
            self._lost = self._lost or time.monotonic()
            return None
        is_out_of_memory: bool = fields["is_out_of_memory"]
        cause, advice = fields["cause"], fields["advice"]
        return faults.failed(stage.host, cause, advice, is_out_of_memory=is_out_of_memory)

    def _overdue(self, now: float) -> Problem | None:
        """Return the problem of a limit that was exceeded, or None."""
        limits = self._limits
        for stage in self._stages:
            is_new = stage.phase is StagePhase.STARTING
            limit_s = limits.start_s if is_new else limits.silent_s
            silent_s = now - stage.heard
            if silent_s < limit_s or stage.has_ended:
                continue
            # A process of this machine that is not stopped may wait for a busy processor.
            if silent_s < 3 * limit_s and stage.is_scheduled:
                continue
            self._end_unreachable(stage)
            report = faults.never_came if is_new else faults.silent
            return report(stage.host, silent_s)
        if self._lost is not None and now - self._lost > limits.blame_s:
            return self._blame_link()
        return self._without_progress(now)

    def _without_progress(self, now: float) -> Problem | None:
        limits = self._limits
        loading = [one for one in self._stages if one.phase is StagePhase.LOADING]
        unformed = [one for one in loading if len(self._stages) > 1 and not one.loaded_bytes]
        if self._joined is not None and unformed and now - self._joined > limits.join_s:
            return faults.not_formed(unformed[-1].host, limits.join_s)
        busy_s = self._stages[0].alive.get("busy_s", 0.0)
        if busy_s > limits.progress_s and now - self._progressed > limits.progress_s:
            behind = min(self._stages, key=lambda one: one.alive.get("passes", 0))
            return faults.stuck(behind.host, limits.progress_s)
        return None

    def _blame_link(self) -> Problem:
        """Return the problem of a broken connection whose ends both run."""
        (first, *_) = [one for one in self._stages if one.has_lost_peer]
        second = self._stages[(first.rank + 1) % len(self._stages)]
        return faults.link_lost(first.host, second.host)

    def _end_unreachable(self, stage: StageProcess) -> None:
        """Ask another machine to end a stage that does not notice the end of its input."""
        if stage.host.is_local or "pid" not in stage.facts:
            return
        command = stage_command(stage.host, (), "stage", "--end", str(stage.facts["pid"]))
        try:
            self._unreachable.append(
                subprocess.Popen(  # noqa: S603 — ssh
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    process_group=0,
                )
            )
        except OSError:
            log.warning("the stage of %s could not be ended", stage.host.name)

    def _end_all(self) -> None:
        for stage in self._stages:
            stage.kill()
        for stage in self._stages:
            stage.close()
        self._selector.close()
        self._far_end.close()
        with suppress(OSError):  # rank 0 has ended, or never started
            self.connection.shutdown(socket.SHUT_RDWR)


def _await_end(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _address(ip: str, port: int) -> str:
    return f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"
