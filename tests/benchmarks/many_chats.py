"""Delays of the main thread while several answers stream into the real window.

    python -m tests.benchmarks.many_chats [--model DIR] [--chats 4] [--seconds 20] [--download]

A precise timer of 5 ms runs on the main thread while all answers run. Prints one JSON line with the
time between its ticks. Without --model the model is a tiny random Qwen3.5, the worst case: nearly
all of a step is Python code, and the engine thread and the main thread share the interpreter. For a
real model on Linux set LD_PRELOAD=libopenblas.so.0. With --download, a model is downloaded from a Hub
on this machine at full speed meanwhile, in two more processes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtWidgets import QApplication

from tests.benchmarks.bench_transcript import Gaps, wait_ms
from tests.fakes.real_window import RealWindow
from tests.fakes.tiny_model import Template, build_tiny

REPO = "someone/Large-4bit"
MEGABYTES = 1_500
LOOK_MS = 20  # interval at which the number of running answers is checked


def measure(real: RealWindow, *, num_chats: int, seconds: float) -> dict[str, object]:
    """Return the times between ticks on the main thread while `num_chats` answers run at once."""
    for attempt in range(20):
        for number in range(num_chats):
            real.ask(f"{attempt} {number}: tell me a long story about a fox.")
        while real.core.turns.live and real.num_at_once < num_chats:
            wait_ms(LOOK_MS)
        if real.num_at_once == num_chats:
            break
        while real.core.turns.live:
            wait_ms(LOOK_MS)
    gaps = Gaps()
    tokens = num_tokens(real)
    start = time.perf_counter()
    while real.num_at_once == num_chats and time.perf_counter() - start < seconds:
        wait_ms(LOOK_MS)
    gaps.stop()
    measured = time.perf_counter() - start
    rate = (num_tokens(real) - tokens) / measured
    return {
        "chats": num_chats,
        "seconds": round(measured, 1),
        "tok_s": round(rate),
        "megabytes": sum(one.done_bytes for one in real.core.hub.downloads) // 1_000_000,
        **gaps.figures(),
    }


def num_tokens(real: RealWindow) -> int:
    """Return the number of tokens of the running answers."""
    return sum(live.num_tokens for live in real.core.turns.live.values())


@contextmanager
def downloading(real: RealWindow, home: Path) -> Generator[None]:
    """Download a large file in the queue of a window, from a Hub in a process of its own."""
    command = [sys.executable, "-m", "tests.fakes.hub_server", REPO, str(MEGABYTES)]
    hub = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert hub.stdout is not None
    os.environ.update(HF_HOME=str(home), HF_ENDPOINT=hub.stdout.readline().strip())
    real.core.hub.download(REPO)
    real.wait_until(lambda: real.core.hub.downloads[0].done_bytes > 0)
    try:
        yield
    finally:
        real.core.hub.pause(REPO)
        hub.communicate()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", type=Path)
    parser.add_argument("--chats", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--download", action="store_true")
    args = parser.parse_args()
    app = QApplication(sys.argv[:1])
    with tempfile.TemporaryDirectory() as temporary:
        data_dir = Path(temporary)
        model = args.model or build_tiny("qwen3_5", data_dir / "m", Template.KEEPING)
        with closing(RealWindow(data_dir)) as real:
            real.launch(model)
            with downloading(real, data_dir / "hf") if args.download else nullcontext():
                row = measure(real, num_chats=args.chats, seconds=args.seconds)
    sys.stdout.write(json.dumps(row) + "\n")
    del app
    return 0


if __name__ == "__main__":
    sys.exit(main())
