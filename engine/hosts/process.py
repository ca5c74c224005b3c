"""One started stage, as its starter sees it: a process of this machine, or ssh to another one."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import psutil

from engine.events import StagePhase, StageState
from engine.hosts.hostfile import Host
from engine.hosts.lines import LineBuffer, LineKind, Tail, packed, parse
from engine.worker.interpreter import own_program

# ssh must not ask for a password, because no person can see the question.
_SSH = ("ssh", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=8")
_CHUNK = 1 << 16


def stage_command(host: Host, envs: Sequence[str], *words: str) -> list[str]:
    """Return the command that starts `rejoinder stage` on a host, or another internal command.

    Rejoinder must have the same path on all hosts.
    """
    program = own_program("app.__main__", *(words or ("stage",)))
    if host.is_local:
        return ["/usr/bin/env", *envs, *program] if envs else program
    return [*_SSH, "--", host.name, shlex.join(["/usr/bin/env", *envs, *program])]


class StageProcess:
    """A started stage: its pipes, and the lines that it has written.

    Only the thread of its group uses it, except that any thread may call `order` and `kill`.

    Raises:
        OSError: the program cannot be started.
    """

    def __init__(
        self, rank: int, host: Host, command: Sequence[str], inherited: int | None
    ) -> None:
        self.rank = rank
        self.host = host
        self._process = subprocess.Popen(  # noqa: S603 — our own program, or ssh
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=() if inherited is None else (inherited,),
            bufsize=0,
            process_group=0,  # Ctrl-C in a terminal signals the starter only
        )
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)
        self._lines = LineBuffer()
        self._errors = Tail()
        self.phase = StagePhase.STARTING
        self.heard = 0.0  # time of the last line, by the group's clock
        self.facts: dict[str, Any] = {}  # fields of the `here` line
        self.is_up = False  # True: its libraries are imported
        self.folder: dict[str, Any] | None = None  # fields of the `folder` line
        self.alive: dict[str, Any] = {}  # fields of the last `alive` line
        self.num_layers = 0
        self.loaded_bytes = self.total_bytes = 0  # of its own weights
        self.has_ended = False  # True: its output has ended
        self.has_lost_peer = False  # True: it ended because the connection to another stage broke

    @property
    def state(self) -> StageState:
        """The stage, for the user."""
        return StageState(
            name=self.host.name,
            phase=self.phase,
            num_layers=self.num_layers,
            loaded_bytes=self.loaded_bytes,
            total_bytes=self.total_bytes,
            memory_bytes=self.facts.get("total", 0),
            process_bytes=self.alive.get("rss", 0),
        )

    @property
    def is_scheduled(self) -> bool:
        """True if the stage is a process of this machine that the system lets run."""
        if not self.host.is_local:
            return False
        try:
            status = psutil.Process(self._process.pid).status()
        except psutil.Error:
            return False
        return status not in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE)

    @property
    def output(self) -> int:
        """The descriptor of its lines."""
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    @property
    def errors(self) -> int:
        """The descriptor of its standard error."""
        assert self._process.stderr is not None
        return self._process.stderr.fileno()

    @property
    def last_words(self) -> str:
        """The last line on its standard error."""
        self.read_errors()
        return self._errors.last_line

    def order(self, kind: LineKind, **fields: object) -> None:
        """Send a line. A process that has ended gets none, and its end is noticed elsewhere."""
        assert self._process.stdin is not None
        with suppress(OSError, ValueError):
            os.write(self._process.stdin.fileno(), packed(kind, **fields))

    def read_lines(self) -> Iterator[tuple[LineKind, dict[str, Any]]] | None:
        """Return the lines that have arrived, or None at the end of the stream."""
        try:
            chunk = os.read(self.output, _CHUNK)
        except BlockingIOError:
            return iter(())
        if not chunk:
            return None
        lines = [parse(line) for line in self._lines.split(chunk)]
        return iter([line for line in lines if line is not None])

    def note(self, kind: LineKind, fields: dict[str, Any]) -> bool:
        """Note a report of the stage. Return True if it has made progress."""
        match kind:
            case LineKind.LOADING:
                self.loaded_bytes, self.total_bytes = fields["done"], fields["total"]
                return True
            case LineKind.READY:
                self.phase = StagePhase.READY
                self.loaded_bytes = self.total_bytes = fields["weight_bytes"]
                return True
            case LineKind.ALIVE:
                before, self.alive = self.alive, fields
                return fields["passes"] != before.get("passes")
            case _:
                return False

    def read_errors(self) -> bool:
        """Read standard error. Return False at its end."""
        try:
            chunk = os.read(self.errors, _CHUNK)
        except BlockingIOError:
            return True
        self._errors.add(chunk)
        return bool(chunk)

    def status(self, timeout_s: float) -> int | None:
        """Return the exit status, or None if the process has not ended within timeout_s."""
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def kill(self) -> None:
        """End the process at once. Another machine ends the stage because its input ends."""
        self._process.kill()

    def close(self) -> None:
        """End the process, wait for its end and close the pipes."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert pipe is not None
            pipe.close()
