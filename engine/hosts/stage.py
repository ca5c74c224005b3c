"""The program of a stage: an expendable process that holds some layers of a model.

Its starter (group.py) gives it orders on standard input and reads its answers (lines.py). The stage
of rank 0 runs the whole engine: commands come in and events go out over a socket that it inherits.

    main thread    imports the libraries, then runs the engine or a follower until the end
    orders         reads standard input; its end ends the process at once
    alive          writes a line every 0.5 s, also while a pass or a receive blocks the main thread
    commands       rank 0: the socket to the queue of the engine

A group of mlx.distributed cannot be formed twice in a process, and a lost peer can block a thread
for good. So every fault ends the process with `os._exit`, which waits for no thread.
"""

from __future__ import annotations

import logging
import os
import platform
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NoReturn

import psutil

from engine.config import EngineConfig
from engine.engine import prepare_libraries
from engine.errors import Failure, failure_of
from engine.events import Command, Event, Shutdown
from engine.hosts.echo import answer, listen
from engine.hosts.faults import PeerLostError
from engine.hosts.folder import describe
from engine.hosts.hostfile import HostsFileError
from engine.hosts.lines import LineBuffer, LineKind, LineWriter, parse
from engine.hosts.wire import StageSocket, WireError, decode
from engine.pipeline.job import EngineEnds
from engine.pulse import Pulse

ALIVE_S = 0.5  # seconds between two `alive` lines
_CHUNK = 1 << 16
_FAILED = 70  # exit status of a stage that ended because of an error

log = logging.getLogger(__name__)


def main(arguments: Sequence[str]) -> int:
    """Run a stage until its starter or an error ends it, or the engine is shut down.

    With the arguments --end PID, end the stage with this process id instead. Its starter asks for
    this if the stage is stopped and does not notice the end of its input.
    """
    if arguments:
        return _end(int(arguments[1]))
    return _serve()


def _end(pid: int) -> int:
    try:
        process = psutil.Process(pid)
        if process.cmdline()[-1:] == ["stage"]:
            process.kill()
    except psutil.Error:
        pass  # it has ended
    return 0


def _serve() -> NoReturn:
    # Libraries may print. Lines go to a private descriptor, and prints to standard error.
    lines = LineWriter(os.dup(1))
    os.dup2(2, 1)
    logging.basicConfig(level=logging.ERROR, stream=sys.stderr)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the starter
    stage = Stage(lines)
    threading.Thread(target=stage.read_orders, name="orders", daemon=True).start()
    try:
        stage.run()
    except BaseException as error:  # noqa: BLE001 — each error is reported and ends the process
        has_lost_peer = isinstance(error, PeerLostError)
        stage.report(failure_of("the stage", error), has_lost_peer=has_lost_peer)
        os._exit(_FAILED)
    os._exit(0)


class Stage:
    """The state of a stage that its threads share."""

    def __init__(self, lines: LineWriter) -> None:
        self._lines = lines
        self.pulse = Pulse()
        self._setup: SimpleQueue[dict[str, Any]] = SimpleQueue()
        # Orders for the main thread, the one that imports mlx.
        self._work: SimpleQueue[tuple[LineKind, dict[str, Any]]] = SimpleQueue()
        self._num_passes = 0
        self._wakes = threading.Semaphore(0)  # a permit for each `go`
        self._caffeinate: subprocess.Popen[bytes] | None = None

    def run(self) -> None:
        """Report that the process runs, wait for the job and do it."""
        setup = self._setup.get()
        ports = _free_ports(setup["ips"])
        self._lines.write(
            LineKind.HERE,
            pid=os.getpid(),
            ports=ports,
            version=version("rejoinder"),
            mlx=version("mlx"),
            total=psutil.virtual_memory().total,
            chip=_chip(),
        )
        threading.Thread(target=self._beat, name="alive", daemon=True).start()
        if setup["config"] is None:
            threading.Event().wait()  # a check of the host: the starter ends this process
        config: EngineConfig = decode(EngineConfig, setup["config"])
        prepare_libraries(config)
        # Imported here, so that `here` is written before mlx is imported, which takes seconds.
        # Every stage has imported it before the group is formed: mlx waits for the other stages
        # with Python's lock held, and no `alive` line could be written.
        from engine.hosts.working import Process, planned, work  # noqa: PLC0415

        self._lines.write(LineKind.UP)
        kind, job = self._work.get()
        if kind is LineKind.PLAN:
            self._lines.write(LineKind.PLAN, **planned(Path(job["path"]), job["free"], config))
            _, job = self._work.get()
        ends = None if job["socket"] is None else _open_ends(job["socket"], self.pulse)
        work(job, config, Process(self._lines, self._note_passes, self._wakes), ends)

    def _note_passes(self, num_passes: int) -> None:
        self._num_passes = num_passes

    def report(self, failure: Failure, *, has_lost_peer: bool) -> None:
        """Write why this process ends."""
        problem = failure.problem
        self._lines.write(
            LineKind.PROBLEM,
            cause=problem.cause,
            advice=problem.advice if failure.is_expected else "",
            is_out_of_memory=failure.is_out_of_memory,
            has_lost_peer=has_lost_peer,
        )

    # Orders of the starter

    def read_orders(self) -> None:
        """Carry out the lines of standard input. End the process when they end."""
        buffer = LineBuffer()
        while chunk := os.read(0, _CHUNK):
            for line in buffer.split(chunk):
                self._obey(line)
        os._exit(0)

    def _obey(self, line: bytes) -> None:
        match parse(line):
            case (LineKind.SETUP, fields):
                self._setup.put(fields)
            case (LineKind.LOOK, fields):
                self._lines.write(LineKind.FOLDER, **describe(Path(fields["path"])))
            case (LineKind.ECHO, fields):
                self._echo(fields["ip"], bytes.fromhex(fields["secret"]))
            case (LineKind.PLAN | LineKind.JOIN as kind, fields):
                self._work.put((kind, fields))
            case (LineKind.GO, _):
                self._wakes.release()
            case (LineKind.AWAKE, fields):
                self._keep_awake(on=fields["on"])
            case _:
                pass

    def _echo(self, ip: str, secret: bytes) -> None:
        """Listen for one measurement of the link, on a thread of its own."""
        listener = listen(ip)
        self._lines.write(LineKind.ECHO, port=listener.getsockname()[1])
        threading.Thread(target=answer, args=(listener, secret), name="echo", daemon=True).start()

    def _keep_awake(self, *, on: bool) -> None:
        """Keep a Mac from sleeping while a model is loaded. caffeinate ends with this process."""
        if self._caffeinate is not None and not on:
            self._caffeinate.kill()
            self._caffeinate.wait()
            self._caffeinate = None
        elif self._caffeinate is None and on and sys.platform == "darwin":
            self._caffeinate = subprocess.Popen(  # noqa: S603 — a program of macOS
                ["/usr/bin/caffeinate", "-i", "-w", str(os.getpid())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )

    def _beat(self) -> None:
        process = psutil.Process()
        ended = threading.Event()
        while not ended.wait(ALIVE_S):
            self._lines.write(
                LineKind.ALIVE,
                rss=process.memory_info().rss,
                free=psutil.virtual_memory().available,
                passes=self._num_passes,
                busy_s=round(self.pulse.busy_s, 1),
            )


def _open_ends(descriptor: int, pulse: Pulse) -> EngineEnds:
    """Return the ends of the engine: the socket to the app carries commands and events."""
    channel = StageSocket(socket.socket(fileno=descriptor))
    commands: SimpleQueue[Command] = SimpleQueue()
    reader = threading.Thread(
        target=_read_commands, args=(channel, commands), name="commands", daemon=True
    )
    reader.start()
    return EngineEnds(commands, lambda event: _send(channel, event), pulse)


def _read_commands(channel: StageSocket, commands: SimpleQueue[Command]) -> None:
    try:
        while (command := channel.receive(Command)) is not None:
            commands.put(command)
    except WireError:
        log.exception("a command was damaged")
        os._exit(_FAILED)
    commands.put(Shutdown())


def _send(channel: StageSocket, event: Event) -> None:
    try:
        channel.send(event)
    except OSError:
        os._exit(1)  # the app has ended


def _chip() -> str:
    """Return the name of the processor."""
    if sys.platform != "darwin":
        return platform.machine()
    command = ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"]
    return subprocess.run(  # noqa: S603 — a program of macOS
        command, capture_output=True, text=True, timeout=5, check=False
    ).stdout.strip()


def _free_ports(ips: list[str]) -> list[int]:
    """Return a free port for each address of this machine.

    Raises:
        HostsFileError: an address does not belong to this machine.
    """
    probes: list[socket.socket] = []
    for ip in ips:
        probe = socket.socket(socket.AF_INET6 if ":" in ip else socket.AF_INET)
        try:
            probe.bind((ip, 0))
        except OSError as error:
            cause = f"{ip} is not one of its addresses."
            raise HostsFileError(cause, advice="Correct the hosts file.") from error
        probes.append(probe)
    ports: list[int] = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports
