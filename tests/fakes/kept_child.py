"""Child processes that outlive the object that started them, so that the next one need not start its own.

A start takes 0.1 to 0.3 s of CPU time. keep_children() makes the readers of files and the helper of the
transcript use KeptChild, which differs from ChildProcess only in that `close` keeps a resting process.
"""

from __future__ import annotations

import subprocess
from collections import defaultdict
from collections.abc import Generator
from contextlib import contextmanager

import pytest
from typing_extensions import override

from app.exchange import isolated
from app.extraction import extractor
from app.viewmodels import helper
from engine.worker.child import ChildProcess
from engine.worker.frames import Frame

# Processes that wait for a call, by the module of their program.
_resting: defaultdict[str, list[subprocess.Popen[bytes]]] = defaultdict(list)


class KeptChild(ChildProcess):
    """A child process that starts with a resting one, if there is one, and leaves it at the end."""

    def __init__(self, module: str) -> None:
        super().__init__(module)
        self._is_resting = True  # False during a call, and after one that raised an exception
        self._is_reusable = True  # False if the process was killed, or keeps state of its user

    @override
    def start(self) -> None:
        if self._process is None:
            self._is_reusable = True
            if _resting[self._module]:
                self._process = _resting[self._module].pop()
        super().start()

    @override
    def exchange(self, call: Frame, *, limit_s: float, max_bytes: int) -> Frame:
        self.start()
        self._is_resting = False
        # The program keeps the state of growing code by a number, which the next user gives again.
        if call.header.get("name") == "grow":
            self._is_reusable = False
        answer = super().exchange(call, limit_s=limit_s, max_bytes=max_bytes)
        self._is_resting = True
        return answer

    @override
    def kill(self) -> None:
        if not self._is_resting:
            self._is_reusable = False  # also if the call ends before the process does
            super().kill()

    @override
    def close(self) -> None:
        process = self._process
        can_rest = self._is_resting and self._is_reusable
        if process is not None and can_rest and process.poll() is None:
            _resting[self._module].append(process)
            self._process = None
        super().close()
        self._is_resting = True


@contextmanager
def keep_children() -> Generator[None]:
    """Keep the processes that read files, lex code and typeset formulas. End them at the end."""
    with pytest.MonkeyPatch.context() as patched:
        for module in (extractor, isolated, helper):
            patched.setattr(module, "ChildProcess", KeptChild)
        yield
    for processes in _resting.values():
        for process in processes:
            _end(process)
    _resting.clear()


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        assert pipe is not None
        pipe.close()
