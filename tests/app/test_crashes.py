"""Crash reports of real processes that end in different ways."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from app.crashes import crash_problem

RUN = """
import os, sys
from pathlib import Path
from app.crashes import CrashLog
from engine.errors import DiskError

try:
    with CrashLog(Path(sys.argv[1])) as crashes:
        print(crashes.last, flush=True)
        exec(sys.argv[2])
except DiskError as error:
    print(error.problem)
"""


def run(folder: Path, what: str) -> tuple[int, str]:
    """Run code with a CrashLog in a new process.

    Return the exit status and the output of the process. The output contains the path of the crash
    report that the previous run left, or None.
    """
    ended = subprocess.run(
        [sys.executable, "-c", RUN, str(folder), what], capture_output=True, text=True, check=False
    )
    return ended.returncode, ended.stdout.strip()


@pytest.mark.parametrize("what", ["pass", "raise DiskError('full')", "sys.exit(3)"])
def test_crash_log_of_process_that_exits_is_removed(tmp_path: Path, what: str) -> None:
    assert run(tmp_path, what)[1].splitlines()[0] == "None"
    assert list(tmp_path.iterdir()) == []


def test_uncaught_exception_is_reported_by_next_run(tmp_path: Path) -> None:
    """Before the window opens, an uncaught exception is recorded only in the crash report."""
    assert run(tmp_path, "raise ImportError('no such library')")[0] == 1
    kept = tmp_path / "crash.kept-1.log"
    assert run(tmp_path, "pass") == (0, str(kept))
    assert crash_problem(kept).details.endswith("ImportError: no such library")


def test_sigkill_is_not_reported_as_crash(tmp_path: Path) -> None:
    assert run(tmp_path, "os.kill(os.getpid(), 9)")[0] == -signal.SIGKILL
    assert run(tmp_path, "pass") == (0, "None")


def test_abort_is_reported_once_by_next_run(tmp_path: Path) -> None:
    assert run(tmp_path, "os.abort()")[0] == -signal.SIGABRT
    assert (tmp_path / "crash.log").stat().st_mode & 0o777 == 0o600
    kept = tmp_path / "crash.kept-1.log"

    assert run(tmp_path, "os.abort()") == (-signal.SIGABRT, str(kept))
    assert run(tmp_path, "pass") == (0, str(tmp_path / "crash.kept-2.log"))
    assert run(tmp_path, "pass") == (0, "None")
    assert crash_problem(kept).details.startswith("Fatal Python error: Aborted")
    assert sorted(one.name for one in tmp_path.iterdir()) == [
        "crash.kept-1.log",
        "crash.kept-2.log",
    ]


def test_crash_log_in_missing_folder_raises_disk_error(tmp_path: Path) -> None:
    status, said = run(tmp_path / "missing", "pass")
    assert status == 0
    assert "crash.log can’t be written: No such file or directory." in said
