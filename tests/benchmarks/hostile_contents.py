"""Stalls of the main thread, seconds and memory of hostile contents in the transcript.

    QT_QPA_PLATFORM=offscreen python -m tests.benchmarks.hostile_contents [--kinds WORD ...]
        [--sizes 4000 20000 100000] [--ways whole streamed]

Each content is shown in a process of its own, which a signal ends after LIMIT_S seconds of CPU time.
Prints a row per content: the longest time of the main thread in one round of the event loop (in ms,
in ms of CPU time, and this as a ratio to plain text of the same length), the seconds and the CPU
seconds until all idle work is done, and the peak of the memory.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Event

from PySide6.QtWidgets import QApplication

sys.path.insert(0, str(Path(__file__).parents[2]))

from app.bridge.garbage import GarbageSearch
from app.settings import Appearance
from app.theme.palette import Theme
from app.viewmodels.transcript import ItemStatus, TranscriptItem
from app.widgets.transcript.view import TranscriptView
from engine.types import Channel, Role
from tests.hostile.contents import CONTENTS, PLAIN, repeated

LIMIT_S = 30
_SIZE = (916, 640)
_PIECE = 40  # characters that arrive at once
_RATE = 20_000  # characters per second
_KEY = "a"


@dataclass(frozen=True, slots=True)
class Costs:
    """The costs of one content."""

    stall_ms: float  # wall time
    stall_cpu_ms: float  # CPU time of the main thread, which other programs do not change
    seconds: float  # from the end of the text until all idle work is done
    cpu_s: float  # CPU time of the main thread in these seconds
    megabytes: float


class Rounds:
    """The rounds of the event loop, and the longest one."""

    def __init__(self, app: QApplication) -> None:
        self._app = app
        self._pause = Event()
        self.longest_s = self.longest_cpu_s = 0.0

    def run_one(self) -> None:
        """Process the pending events."""
        started, started_cpu = time.perf_counter(), time.thread_time()
        self._app.processEvents()
        self.longest_s = max(self.longest_s, time.perf_counter() - started)
        self.longest_cpu_s = max(self.longest_cpu_s, time.thread_time() - started_cpu)
        self._pause.wait(0.001)


def _item(text: str, status: ItemStatus) -> TranscriptItem:
    return TranscriptItem(key=_KEY, role=Role.ASSISTANT, text=text, status=status)


def _stream(view: TranscriptView, rounds: Rounds, text: str) -> None:
    view.show_conversation([_item("", ItemStatus.STREAMING)])
    started, sent = time.perf_counter(), 0
    while sent < len(text):
        due = int((time.perf_counter() - started) * _RATE)
        while sent < min(due, len(text)):
            view.append_delta(_KEY, Channel.ANSWER, text[sent : sent + _PIECE])
            sent += _PIECE
        rounds.run_one()


def measure(text: str, *, streamed: bool) -> Costs:
    """Show a text and wait until all idle work is done. Return the costs."""
    app = QApplication([])
    garbage = GarbageSearch()  # as in the app
    view = TranscriptView(Theme(app, Appearance.LIGHT))
    view.resize(*_SIZE)
    view.show_conversation([_item("Warm up. $x$", ItemStatus.COMPLETE)])
    view.show()
    rounds = Rounds(app)
    until = time.perf_counter() + 0.3
    while time.perf_counter() < until or not view.statistics().is_idle:
        rounds.run_one()
    rounds = Rounds(app)
    if streamed:
        _stream(view, rounds, text)
    started, started_cpu = time.perf_counter(), time.thread_time()
    if streamed:
        view.finish(_item(text, ItemStatus.COMPLETE))
    else:
        view.show_conversation([_item(text, ItemStatus.COMPLETE)])
    rounds.longest_s = max(rounds.longest_s, time.perf_counter() - started)
    rounds.longest_cpu_s = max(rounds.longest_cpu_s, time.thread_time() - started_cpu)
    while True:
        rounds.run_one()
        if view.statistics().is_idle:
            break
    seconds, cpu_s = time.perf_counter() - started, time.thread_time() - started_cpu
    garbage.close()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return Costs(rounds.longest_s * 1e3, rounds.longest_cpu_s * 1e3, seconds, cpu_s, peak / unit)


def in_process(text: str, *, streamed: bool) -> Costs | None:
    """Measure a text in a process of its own. Return None if it exceeds LIMIT_S or crashes."""
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        signal.setitimer(signal.ITIMER_PROF, LIMIT_S)
        os.write(writing, json.dumps(asdict(measure(text, streamed=streamed))).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as results:
        found = results.read()
    os.waitpid(child, 0)
    return Costs(**json.loads(found)) if found else None


def rows(kinds: list[str], sizes: list[int], ways: list[str]) -> Iterator[str]:
    """Yield a line of the table for each content."""
    for way in ways:
        for size in sizes:
            plain = in_process(repeated(PLAIN)(size), streamed=way == "streamed")
            assert plain is not None
            yield _line("PLAIN", size, way, plain, plain)
            for kind, make in CONTENTS.items():
                if any(word in kind for word in kinds):
                    costs = in_process(make(size), streamed=way == "streamed")
                    yield _line(kind, size, way, costs, plain)


def _line(kind: str, size: int, way: str, costs: Costs | None, plain: Costs) -> str:
    name = f"{kind[:26]:26} {size:7} {way:8}"
    if costs is None:
        return f"{name} NO END in {LIMIT_S} s"
    ratio = costs.stall_cpu_ms / plain.stall_cpu_ms
    return (
        f"{name} {costs.stall_ms:7.0f} ms {costs.stall_cpu_ms:7.0f} ms CPU {ratio:6.1f} x"
        f" {costs.seconds:6.1f} s {costs.cpu_s:6.2f} s CPU {costs.megabytes:6.0f} MB"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kinds", nargs="+", default=[""], help="only kinds with these words")
    parser.add_argument("--sizes", nargs="+", type=int, default=[4_000, 20_000, 100_000])
    parser.add_argument("--ways", nargs="+", default=["whole", "streamed"])
    args = parser.parse_args()
    for line in rows(args.kinds, args.sizes, args.ways):
        print(line, flush=True)


if __name__ == "__main__":
    main()
