"""Measure how long hostile contents stall the transcript, whole and streamed.

    QT_QPA_PLATFORM=offscreen python -m tests.hostile.stalls [--kinds WORD ...] [--length N]

A stall is the processor time in ms between two turns of the event loop. A text that does not settle in
30 s is given up. The first two rows are plain texts of the same length.
"""

from __future__ import annotations

import argparse
import signal
import sys
from dataclasses import dataclass
from time import perf_counter, process_time
from types import FrameType

import psutil
from PySide6.QtCore import QEvent, Qt, QTimer
from PySide6.QtWidgets import QApplication
from typing_extensions import override

from app.bridge.garbage import GarbageSearch
from app.main import switch_threads_often
from app.settings import Appearance
from app.theme.palette import Theme
from app.viewmodels.transcript import ItemStatus, TranscriptItem
from app.widgets.transcript.view import TranscriptView
from engine.types import Channel, Role
from tests.hostile.contents import CONTENTS, LENGTH

LIMIT_S = 30
_TICK_MS = 2
_KEY = "a"
# Characters of a delta. At 150 tokens a second, a frame of 16 ms has 10 characters.
_DELTA_LEN = 200


class GivenUpError(Exception):
    """The text did not settle in time."""


@dataclass(frozen=True, slots=True)
class Stall:
    """The cost of showing one content."""

    stall_ms: float
    settle_s: float
    megabytes: float  # growth of the process's memory
    is_settled: bool

    @override
    def __str__(self) -> str:
        end = "" if self.is_settled else "  NOT SETTLED"
        return f"{self.stall_ms:7.0f} ms {self.settle_s:5.1f} s {self.megabytes:5.0f} MB{end}"


class StallWatch:
    """Measures the longest processor time between two turns of the event loop.

    Processor time of all threads, because a thread that holds Python's lock stalls the window too.
    It does not depend on other programs.
    """

    def __init__(self) -> None:
        self.longest_s = 0.0
        self._last = process_time()
        self._timer = QTimer(interval=_TICK_MS, timerType=Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._tick)
        self._timer.start()

    def stop(self) -> None:
        self._tick()
        self._timer.stop()

    def _tick(self) -> None:
        now = process_time()
        self.longest_s = max(self.longest_s, now - self._last)
        self._last = now


def measure(theme: Theme, text: str, *, streamed: bool) -> Stall:
    """Show a text in a new transcript, and wait until the transcript has settled."""
    app = QApplication.instance()
    assert app is not None
    view = TranscriptView(theme)
    view.resize(916, 640)
    view.show()
    app.processEvents()
    memory, started, watch = _memory(), perf_counter(), StallWatch()
    is_settled = True
    signal.alarm(3 * LIMIT_S)  # if one turn of the event loop does not end
    try:
        if streamed:
            item = TranscriptItem(
                key=_KEY, role=Role.ASSISTANT, text="", status=ItemStatus.STREAMING
            )
            view.show_conversation([])
            view.begin_answer(item)
            for at in range(0, len(text), _DELTA_LEN):
                view.append_delta(_KEY, Channel.ANSWER, text[at : at + _DELTA_LEN])
                app.processEvents()
            view.finish(TranscriptItem(key=_KEY, role=Role.ASSISTANT, text=text))
        else:
            view.show_conversation([TranscriptItem(key=_KEY, role=Role.ASSISTANT, text=text)])
        while not view.statistics().is_idle and is_settled:
            app.processEvents()
            is_settled = perf_counter() - started < LIMIT_S
    except GivenUpError:
        is_settled = False
    signal.alarm(0)
    watch.stop()
    stall = Stall(
        watch.longest_s * 1e3, perf_counter() - started, _memory() - memory, is_settled=is_settled
    )
    view.close()
    view.deleteLater()
    app.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    return stall


def _memory() -> float:
    return psutil.Process().memory_info().rss / 1e6


def _give_up(_: int, __: FrameType | None) -> None:
    raise GivenUpError


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kinds", nargs="+", default=[""], help="only kinds with these words")
    parser.add_argument("--length", type=int, default=LENGTH, help="characters of each text")
    args = parser.parse_args()
    app = QApplication(sys.argv[:1])
    switch_threads_often()
    search, theme = GarbageSearch(app), Theme(app, Appearance.LIGHT)
    signal.signal(signal.SIGALRM, _give_up)
    for kind, content in CONTENTS.items():
        if any(word in kind for word in args.kinds):
            text = content(args.length)
            whole, streamed = (measure(theme, text, streamed=flag) for flag in (False, True))
            print(f"{kind:32} {len(text):7} {whole}  streamed {streamed}", flush=True)
    del search


if __name__ == "__main__":
    main()
