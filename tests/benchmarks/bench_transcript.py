"""Opening and streaming in the transcript, measured; prints one JSON line per measurement.

QT_QPA_PLATFORM=offscreen QT_SCALE_FACTOR=2 python tests/benchmarks/bench_transcript.py
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
from collections import deque
from dataclasses import replace
from pathlib import Path
from time import perf_counter

from PySide6.QtCore import QEventLoop, QObject, Qt, QTimer, Signal
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QApplication
from typing_extensions import override

sys.path.insert(0, str(Path(__file__).parents[2]))

from app.settings import Appearance
from app.theme.palette import Theme
from app.viewmodels.transcript import ItemStatus, TranscriptItem
from app.widgets.transcript import TranscriptView
from engine.types import Channel, Role

SIZE = (916, 640)
TICK_MS = 5
NEW = "new"

PROSE = (
    "Because each token is folded into one **fixed-size** matrix, removing a token would need the "
    "inverse of every update since, so we keep `snapshots` at message boundaries. "
)
LIST = (
    "- the first of some points, with *emphasis* and a [link](https://example.org)\n- the second\n"
)
CODE = """```python
def restore(chat, node):
    \"\"\"Return how many tokens are left.\"\"\"
    snapshot = chat.nearest(node)  # message boundary
    for layer, state in enumerate(snapshot.states):
        state.load(layer, dtype="bf16")
    return node.num_tokens - snapshot.num_tokens
```
"""


def answer_text(num_code_blocks: int, num_paragraphs: int) -> str:
    section = "\n\n".join(["## A heading", *[PROSE * 2] * num_paragraphs, LIST, CODE])
    return "\n\n".join([section] * num_code_blocks)


def conversation(num_messages: int) -> list[TranscriptItem]:
    items: list[TranscriptItem] = []
    for number in range(num_messages // 2):
        question = TranscriptItem(key=f"u{number}", role=Role.USER, text=f"Question {number}? " * 5)
        text = f"{PROSE * (2 + number % 4)}\n\n{CODE if number % 3 == 0 else LIST}"
        items += [question, TranscriptItem(key=f"a{number}", role=Role.ASSISTANT, text=text)]
    return items


class TimedView(TranscriptView):
    """Notes when what was appended has been painted."""

    def __init__(self, theme: Theme, key: str) -> None:
        super().__init__(theme)
        self.latencies: list[float] = []
        self.paints: list[float] = []
        self._key = key
        self._appended = 0
        self._waiting: deque[tuple[int, float]] = deque()  # text length, when it was appended

    @override
    def append(self, key: str, channel: Channel, delta: str) -> None:
        self._appended += len(delta)
        self._waiting.append((self._appended, perf_counter()))
        super().append(key, channel, delta)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        started = perf_counter()
        super().paintEvent(event)
        now = perf_counter()
        self.paints.append(now - started)
        shown = len(self.text_of(self._key)) if self._waiting else 0
        while self._waiting and self._waiting[0][0] <= shown:
            self.latencies.append(now - self._waiting.popleft()[1])


class Source(QObject):
    """Emits an answer from a thread of its own, token by token."""

    token = Signal(str)
    done = Signal()

    def __init__(self, text: str, tokens_per_s: float) -> None:
        super().__init__()
        self._pieces = [text[at : at + 4] for at in range(0, len(text), 4)]
        self._interval = 1 / tokens_per_s
        self._stopped = threading.Event()
        self.num_tokens = len(self._pieces)

    def run(self) -> None:
        due = perf_counter()
        for piece in self._pieces:
            self.token.emit(piece)
            due += self._interval
            self._stopped.wait(max(0.0, due - perf_counter()))
        self.done.emit()


def wait_ms(milliseconds: int) -> None:
    loop = QEventLoop()
    QTimer.singleShot(milliseconds, loop.quit)
    loop.exec()


def scroll_by(view: TranscriptView, pixels: int) -> None:
    bar = view.verticalScrollBar()
    bar.setValue(bar.value() + pixels)


def new_view(theme: Theme) -> TimedView:
    view = TimedView(theme, NEW)
    view.resize(*SIZE)
    view.show()
    view.activateWindow()
    wait_ms(100)
    return view


def bench_open(theme: Theme, num_messages: int) -> None:
    items = conversation(num_messages)
    spent: list[float] = []
    for _ in range(5):
        view = new_view(theme)
        started = perf_counter()
        view.show_conversation(items)
        view.viewport().repaint()
        spent.append(perf_counter() - started)
        view.close()
        view.deleteLater()
    report("open", messages=num_messages, median_ms=ms(quantile(spent, 0.5)), max_ms=ms(max(spent)))


def bench_settle(theme: Theme, num_messages: int) -> None:
    """Measure the rest of a long conversation in idle time, and resizing meanwhile."""
    view = new_view(theme)
    view.show_conversation(conversation(num_messages))
    started = perf_counter()
    gaps = Gaps()
    while not view.statistics().is_idle:
        wait_ms(100)
    gaps.stop()
    settled_s = perf_counter() - started
    steps: list[float] = []
    for step in range(20):
        started = perf_counter()
        view.resize(SIZE[0] - 10 * step, SIZE[1])
        view.viewport().repaint()
        steps.append(perf_counter() - started)
    report("settle", messages=num_messages, seconds=round(settled_s, 2), **gaps.figures())
    report("resize", messages=num_messages, p50_ms=ms(quantile(steps, 0.5)), max_ms=ms(max(steps)))
    view.close()
    view.deleteLater()


def bench_scroll(theme: Theme, num_messages: int) -> None:
    """Scroll up through messages that were never measured, a notch of the wheel at a time."""
    view = new_view(theme)
    view.show_conversation(conversation(num_messages))
    steps: list[float] = []
    for _ in range(200):
        started = perf_counter()
        scroll_by(view, -60)
        wait_ms(0)
        steps.append(perf_counter() - started)
    p50, p95 = ms(quantile(steps, 0.5)), ms(quantile(steps, 0.95))
    report("scroll", messages=num_messages, p50_ms=p50, p95_ms=p95, max_ms=ms(max(steps)))
    view.close()
    view.deleteLater()


class Gaps(QObject):
    """A precise timer on the main thread that notes how late it is."""

    def __init__(self) -> None:
        super().__init__()
        self._times: list[float] = []
        self._timer = QTimer(self)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(lambda: self._times.append(perf_counter()))
        self._timer.start(TICK_MS)

    def stop(self) -> None:
        self._timer.stop()

    def figures(self) -> dict[str, float]:
        gaps = [after - before for before, after in zip(self._times, self._times[1:], strict=False)]
        return {
            "gap_p50_ms": ms(quantile(gaps, 0.5)),
            "gap_p95_ms": ms(quantile(gaps, 0.95)),
            "gap_p99_ms": ms(quantile(gaps, 0.99)),
            "gap_max_ms": ms(max(gaps)),
        }


def bench_stream(theme: Theme, text: str, *, tokens_per_s: float, follow: bool) -> None:
    view = new_view(theme)
    history = conversation(200)
    view.show_conversation(history)
    wait_ms(3000)
    item = TranscriptItem(key=NEW, role=Role.ASSISTANT, text="", status=ItemStatus.STREAMING)
    view.set_items([*history, TranscriptItem(key="ask", role=Role.USER, text="Write a lot."), item])
    if follow:
        view.jump_to_latest()
    source = Source(text, tokens_per_s)
    loop = QEventLoop()

    def take(piece: str) -> None:
        view.append(NEW, Channel.ANSWER, piece)

    source.token.connect(take)
    source.done.connect(loop.quit)
    view.paints.clear()
    gaps = Gaps()
    thread = threading.Thread(target=source.run)
    started = perf_counter()
    thread.start()
    loop.exec()
    thread.join()
    view.finish(replace(item, text=text, status=ItemStatus.COMPLETE))
    gaps.stop()
    report(
        "stream",
        follow=follow,
        tokens=source.num_tokens,
        seconds=round(perf_counter() - started, 1),
        active=view.isActiveWindow(),
        paints=len(view.paints),
        paint_p50_ms=ms(quantile(view.paints, 0.5)),
        paint_p95_ms=ms(quantile(view.paints, 0.95)),
        latency_p95_ms=ms(quantile(view.latencies, 0.95)),
        latency_max_ms=ms(max(view.latencies)),
        complete=view.text_of(NEW) == text,
        **gaps.figures(),
    )
    view.close()
    view.deleteLater()


def ms(seconds: float) -> float:
    return round(seconds * 1000, 2)


def quantile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def report(name: str, **figures: object) -> None:
    sys.stdout.write(json.dumps({"benchmark": f"transcript.{name}", **figures}) + "\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="a short answer, fewer messages")
    quick = parser.parse_args().quick
    app = QApplication([])
    theme = Theme(app, Appearance.LIGHT)
    num_messages = 200 if quick else 2000
    bench_open(theme, num_messages)
    bench_scroll(theme, num_messages)
    bench_settle(theme, num_messages)
    text = answer_text(2, 2) if quick else answer_text(10, 2)
    for follow in (True, False):
        bench_stream(theme, text, tokens_per_s=150, follow=follow)


if __name__ == "__main__":
    main()
