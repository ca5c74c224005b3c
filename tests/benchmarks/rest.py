"""Measures what the app costs while it rests with a loaded model and an open chat.

    python -m tests.benchmarks.rest [--model DIR] [--seconds 60] [--timers]

Starts the app in a process of its own (on DISPLAY if it is set, else on Qt's offscreen platform),
with a tiny hybrid model unless --model names another. Sends a message and waits until no work is
left. Then it prints for each state of the window (the caret blinks in the composer; minimised; hidden)
one JSON line: the time of the CPU in percent of a core, and the wake-ups a second (voluntary context
switches of all threads, /proc/PID/task/*/status), together and by thread. Child processes are counted
too, by their command. Qt's shared memory with the X server is off: it makes Qt wait for two messages
of the server before each repaint, 3.5 to 4 wake-ups a second with the caret. --timers also prints the Qt timers that fire within 10 s in each state.

Returns 1 if a figure is above its limit: 0.3 % and 5 wake-ups a second with the caret, 0.1 % and 1
otherwise.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

import psutil

from tests.fakes.tiny_model import build_tiny

_ROOT = Path(__file__).parents[2]
# The engine returns MLX's freed buffers 10 s after a request, its last work.
_QUIET_S = 15.0


@dataclass(frozen=True)
class Limits:
    """Highest share of a core in percent, and highest number of wake-ups a second."""

    percent: float
    wakes: float


_HIDDEN = Limits(0.1, 1.0)
LIMITS: Final = {"caret": Limits(0.3, 5.0), "minimise": _HIDDEN, "hide": _HIDDEN}


@dataclass(frozen=True)
class ThreadUse:
    """The counts of a thread since it began."""

    name: str
    wakes: int
    cpu_ns: int


class RestingApp:
    """The app in a process of its own. It obeys the orders of tests.benchmarks.resting_window."""

    def __init__(self, data: Path, model: Path, platform: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.benchmarks.resting_window", str(data), str(model)],
            cwd=_ROOT,
            env={
                **os.environ,
                "HF_HUB_OFFLINE": "1",
                "QT_QPA_PLATFORM": platform,
                "QT_XCB_NO_MITSHM": "1",
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def read(self) -> object:
        """Return the next value that the app has printed."""
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def send_order(self, order: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{order}\n")
        self._process.stdin.flush()

    def obey(self, order: str) -> object:
        self.send_order(order)
        return self.read()

    def end(self) -> None:
        self.send_order("quit")
        self._process.wait(30)

    def use(self) -> dict[tuple[int, int], ThreadUse]:
        """Return the counts of all threads of the app and its child processes."""
        names = cast("dict[str, str]", self.obey("names"))
        found: dict[tuple[int, int], ThreadUse] = {}
        parent = psutil.Process(self._process.pid)
        for process in (parent, *parent.children(recursive=True)):
            command = "" if process.pid == parent.pid else f"{' '.join(process.cmdline()[-2:])}: "
            for task in Path(f"/proc/{process.pid}/task").iterdir():
                name = names.get(task.name) or (task / "comm").read_text().strip()
                found[process.pid, int(task.name)] = ThreadUse(
                    command + name, _wakes(task), _cpu_ns(task)
                )
        return found

    def measure(self, state: str, seconds: float) -> dict[str, object]:
        """Bring the window into a state. Return the figures of some seconds in this state."""
        window = self.obey(state)
        before, began = self.use(), time.monotonic()
        threading.Event().wait(seconds)
        spent = time.monotonic() - began
        wakes, cpu_ns = Counter[str](), Counter[str]()
        for key, use in self.use().items():
            earlier = before.get(key, ThreadUse(use.name, 0, 0))
            wakes[use.name] += use.wakes - earlier.wakes
            cpu_ns[use.name] += use.cpu_ns - earlier.cpu_ns
        threads = {
            name: {
                "percent": _percent(cpu_ns[name], spent),
                "wakes_per_s": round(wakes[name] / spent, 2),
            }
            for name in sorted(wakes, key=lambda name: -wakes[name])
            if wakes[name]
        }
        return {
            "state": state,
            "window": window,
            "percent": _percent(cpu_ns.total(), spent),
            "wakes_per_s": round(wakes.total() / spent, 2),
            "processes": len({pid for pid, _ in before}),
            "threads": threads,
        }


def _percent(cpu_ns: int, seconds: float) -> float:
    return round(100 * cpu_ns / 1e9 / seconds, 3)


def _wakes(task: Path) -> int:
    lines = (task / "status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt"))


def _cpu_ns(task: Path) -> int:
    return int((task / "schedstat").read_text().split()[0])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--timers", action="store_true")
    args = parser.parse_args()
    platform = "xcb" if os.environ.get("DISPLAY") else "offscreen"
    is_within = True
    with tempfile.TemporaryDirectory() as folder:
        model = args.model or build_tiny("qwen3_5", Path(folder) / "model")
        app = RestingApp(Path(folder) / "data", model.resolve(), platform)
        while app.read() != "rests":
            pass
        threading.Event().wait(_QUIET_S)
        for state, limits in LIMITS.items():
            figures = app.measure(state, args.seconds)
            sys.stdout.write(json.dumps({"platform": platform, **figures}) + "\n")
            percent, wakes = (
                cast("float", figures["percent"]),
                cast("float", figures["wakes_per_s"]),
            )
            is_within &= percent <= limits.percent and wakes <= limits.wakes
            if args.timers:
                sys.stdout.write(json.dumps({"timers": app.obey("timers")}) + "\n")
            sys.stdout.flush()
        app.end()
    return 0 if is_within else 1


if __name__ == "__main__":
    sys.exit(main())
