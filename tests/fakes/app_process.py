"""The real app as a separate process, with a new home folder and no model."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

WAITS = 1200  # maximum number of polls in wait_for, which together take a minute
WAIT_S = 0.05


def run_app(
    home: Path, *arguments: str | Path, platform: str = "offscreen", data_dir: str | None = "data"
) -> subprocess.Popen[str]:
    """Start `python -m app` and return at once, before its window is open.

    `data_dir` is the name of the app's data folder in `home`. If it is None, the app uses the
    platform's default folders.
    """
    command = [sys.executable, "-P", "-m", "app", "--model", str(home / "none")]
    if data_dir is not None:
        command += ["--data-dir", str(home / data_dir)]
    return subprocess.Popen(
        [*command, *(str(one) for one in arguments)],
        env=environment(home, platform),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def environment(home: Path, platform: str = "offscreen") -> Mapping[str, str]:
    """Return this process's environment variables, without XDG folders and with `home` as HOME."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith("XDG_")}
    return {**kept, "QT_QPA_PLATFORM": platform, "HOME": str(home), "HF_HOME": str(home / "hf")}


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    """Poll until the condition is true, the process has ended or a minute has passed."""
    patience = threading.Event()
    for _ in range(WAITS):
        if condition() or process.poll() is not None:
            return
        patience.wait(WAIT_S)


def wait_for_line(log: Path, line: str, process: subprocess.Popen[str]) -> None:
    wait_for(lambda: log.exists() and line in log.read_text("utf-8"), process)
    assert line in log.read_text("utf-8"), process.poll()


def wait_for_window(logs_dir: Path, process: subprocess.Popen[str]) -> Path:
    """Wait until the app has logged that its window is open. Return the path of the log."""
    log = logs_dir / "rejoinder.log"
    wait_for_line(log, "the window is open", process)
    return log
