"""Faults of real processes."""

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
    """-> its status, and the account that it found of the run before."""
    ended = subprocess.run(
        [sys.executable, "-c", RUN, str(folder), what], capture_output=True, text=True, check=False
    )
    return ended.returncode, ended.stdout.strip()


@pytest.mark.parametrize("what", ["pass", "raise DiskError('full')", "sys.exit(3)"])
def test_who_ends_by_himself_leaves_nothing(tmp_path: Path, what: str) -> None:
    assert run(tmp_path, what)[1].splitlines()[0] == "None"
    assert list(tmp_path.iterdir()) == []


def test_an_error_that_nobody_caught_is_a_fault(tmp_path: Path) -> None:
    """Before there is a window, it has no other place."""
    assert run(tmp_path, "raise ImportError('no such library')")[0] == 1
    kept = tmp_path / "crash.kept-1.log"
    assert run(tmp_path, "pass") == (0, str(kept))
    assert crash_problem(kept).details.endswith("ImportError: no such library")


def test_a_power_cut_is_no_fault(tmp_path: Path) -> None:
    assert run(tmp_path, "os.kill(os.getpid(), 9)")[0] == -signal.SIGKILL
    assert run(tmp_path, "pass") == (0, "None")


def test_a_fault_is_written_down_and_told_once(tmp_path: Path) -> None:
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


def test_a_folder_that_can_not_be_written_has_its_sentence(tmp_path: Path) -> None:
    status, said = run(tmp_path / "missing", "pass")
    assert status == 0
    assert "crash.log can’t be written: No such file or directory." in said
