"""Times of opening, scrolling, searching and streaming in the transcript.

    QT_QPA_PLATFORM=offscreen QT_SCALE_FACTOR=2 python -m tests.benchmarks.bench_transcript [--only answer]

Prints one JSON line per measurement. --only runs one of these alone:

answer  10,000 tokens with 20 code blocks and 40 formulas at 150 tokens per second while a user
        types; then the same text in a QTextBrowser, which gets the whole text at each frame
find    a search for a new word in 4,000 messages, and a step from one match to the next
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import perf_counter

from PySide6.QtCore import QEvent, QEventLoop, QObject, Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent, QPaintEvent
from PySide6.QtWidgets import QApplication, QTextBrowser, QVBoxLayout, QWidget
from typing_extensions import override

sys.path.insert(0, str(Path(__file__).parents[2]))

from app.bridge.garbage import GarbageSearch
from app.settings import Appearance
from app.theme.palette import Theme
from app.theme.tokens import Size, Space
from app.thread_switching import switch_threads_often
from app.viewmodels.transcript import ItemStatus, TranscriptItem
from app.widgets.composer_edit import ComposerEdit
from app.widgets.transcript.view import TranscriptView
from engine.types import Channel, Role

SIZE = (916, 640)
NARROW = Size.COLUMN + 2 * Space.XL
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


def answer_text(num_sections: int, num_paragraphs: int) -> str:
    """Return a long answer. Each section has a code block and two formulas of its own."""
    return "\n\n".join(
        "\n\n".join(["## A heading", *[PROSE * 2] * num_paragraphs, formulas(number), LIST, CODE])
        for number in range(num_sections)
    )


def formulas(number: int) -> str:
    inline = (
        f"After token {number} the state is $S_{{{number}}} = \\beta_{{{number}}} k v^\\top$, and:"
    )
    return (
        f"{inline}\n\n$$\n\\sum_{{i=0}}^{{{number}}} \\frac{{x_i^2}}{{\\sqrt{{i + {number}}}}}\n$$"
    )


def conversation(num_messages: int) -> list[TranscriptItem]:
    items: list[TranscriptItem] = []
    for number in range(num_messages // 2):
        question = TranscriptItem(key=f"u{number}", role=Role.USER, text=f"Question {number}? " * 5)
        text = f"{PROSE * (2 + number % 4)}\n\n{CODE if number % 3 == 0 else LIST}"
        items += [question, TranscriptItem(key=f"a{number}", role=Role.ASSISTANT, text=text)]
    return items


class TimedView(TranscriptView):
    """A transcript that measures the time until an appended delta is painted."""

    def __init__(self, theme: Theme, key: str) -> None:
        super().__init__(theme)
        self.latencies: list[float] = []  # seconds from each delta until it was painted
        self.paints: list[float] = []  # duration of each paint event in seconds
        self._key = key
        self._appended = 0
        # Deltas that are not painted yet: (length of the text after the delta, time of the delta).
        self._waiting: deque[tuple[int, float]] = deque()

    @override
    def append_delta(self, key: str, channel: Channel, delta: str) -> None:
        self._appended += len(delta)
        self._waiting.append((self._appended, perf_counter()))
        super().append_delta(key, channel, delta)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        started = perf_counter()
        super().paintEvent(event)
        now = perf_counter()
        self.paints.append(now - started)
        shown = len(self.text_of(self._key)) if self._waiting else 0
        while self._waiting and self._waiting[0][0] <= shown:
            self.latencies.append(now - self._waiting.popleft()[1])


class AnswerSource(QObject):
    """Emits an answer token by token at a fixed rate, on a thread of its own."""

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
    report(
        "transcript.open",
        messages=num_messages,
        median_ms=ms(quantile(spent, 0.5)),
        max_ms=ms(max(spent)),
    )


def bench_huge(theme: Theme) -> None:
    """Show answers of 20 kB and 2 MB, and look for gaps in the first 300 ms of the idle work."""
    for name, unit in (("words", "word "), ("prose", PROSE), ("code", "```python\nx = 1\n```\n")):
        for num_bytes in (20_000, 2_000_000):
            view = new_view(theme)
            answer = replace(conversation(2)[1], text=unit * (num_bytes // len(unit)))
            started = perf_counter()
            view.show_conversation([answer])
            view.viewport().repaint()
            spent = perf_counter() - started
            gaps = Gaps()
            wait_ms(300)
            gaps.stop()
            figures = {"text": name, "bytes": num_bytes, "show_ms": ms(spent)}
            report("transcript.huge", **figures, **gaps.figures())
            view.close()
            view.deleteLater()


def bench_settle(theme: Theme, num_messages: int) -> None:
    """Measure the layout of a long conversation in idle time, then the time to resize the view."""
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
        view.resize(NARROW - 10 * step, SIZE[1])  # a narrower view: all text wraps again
        view.viewport().repaint()
        steps.append(perf_counter() - started)
    report(
        "transcript.settle", messages=num_messages, seconds=round(settled_s, 2), **gaps.figures()
    )
    report(
        "transcript.resize",
        messages=num_messages,
        p50_ms=ms(quantile(steps, 0.5)),
        max_ms=ms(max(steps)),
    )
    view.close()
    view.deleteLater()


def bench_scroll(theme: Theme, num_messages: int) -> None:
    """Scroll up through messages that have no exact height yet, one notch of the wheel per step."""
    view = new_view(theme)
    view.show_conversation(conversation(num_messages))
    steps: list[float] = []
    for _ in range(200):
        started = perf_counter()
        scroll_by(view, -60)
        wait_ms(0)
        steps.append(perf_counter() - started)
    p50, p95 = ms(quantile(steps, 0.5)), ms(quantile(steps, 0.95))
    report(
        "transcript.scroll", messages=num_messages, p50_ms=p50, p95_ms=p95, max_ms=ms(max(steps))
    )
    view.close()
    view.deleteLater()


def bench_find(theme: Theme, num_messages: int) -> None:
    """Measure a text search and a step to the next match, before and after layout in idle time."""
    view = new_view(theme)
    # All texts differ. A search could otherwise reuse its result for an equal text.
    items = [replace(item, text=f"{item.text} {item.key}") for item in conversation(num_messages)]
    view.show_conversation(items)
    for settled in (False, True):
        while settled and not view.statistics().is_idle:
            wait_ms(100)
        for word in ("folded", "e", "token would need", "nowhere"):
            started = perf_counter()
            found = view.find_controller.look_for(word)
            looked = perf_counter()
            view.find_controller.go(1)
            stepped = perf_counter()
            report(
                "transcript.find",
                messages=num_messages,
                settled=settled,
                word=word,
                found=found.total,
                new_word_ms=ms(looked - started),
                step_ms=ms(stepped - looked),
            )
        view.find_controller.look_for("")
    view.close()
    view.deleteLater()


class Gaps(QObject):
    """A precise timer on the main thread that records the time between its ticks."""

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


def play(source: AnswerSource, take: Callable[[str], None], finish: Callable[[], None]) -> Gaps:
    """Stream an answer and wait 200 ms. Return the timer (see Gaps) that ran at the same time."""
    loop = QEventLoop()
    source.token.connect(take)
    source.done.connect(loop.quit)
    gaps = Gaps()
    thread = threading.Thread(target=source.run)
    thread.start()
    loop.exec()
    thread.join()
    finish()
    wait_ms(200)
    gaps.stop()
    return gaps


def bench_stream(theme: Theme, text: str, *, tokens_per_s: float, follow: bool) -> None:
    view = new_view(theme)
    history = conversation(200)
    view.show_conversation(history)
    wait_ms(3000)
    item = TranscriptItem(key=NEW, role=Role.ASSISTANT, text="", status=ItemStatus.STREAMING)
    view.set_items([*history, TranscriptItem(key="ask", role=Role.USER, text="Write a lot."), item])
    if follow:
        view.jump_to_latest()
    source = AnswerSource(text, tokens_per_s)
    view.paints.clear()
    started = perf_counter()
    gaps = play(
        source,
        lambda piece: view.append_delta(NEW, Channel.ANSWER, piece),
        lambda: view.finish(replace(item, text=text, status=ItemStatus.COMPLETE)),
    )
    report(
        "transcript.stream",
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


class Typist(QObject):
    """A simulated user who presses a key in the composer every 170 ms."""

    def __init__(self, edit: TimedEdit) -> None:
        super().__init__()
        self._edit = edit
        self._timer = QTimer(self, interval=170)
        self._timer.timeout.connect(self._press)
        self._timer.start()

    def stop(self) -> None:
        self._timer.stop()

    def _press(self) -> None:
        self._edit.pressed.append(perf_counter())
        for kind in (QEvent.Type.KeyPress, QEvent.Type.KeyRelease):
            key = QKeyEvent(kind, Qt.Key.Key_A, Qt.KeyboardModifier.NoModifier, "a")
            QApplication.postEvent(self._edit, key)


class TimedEdit(ComposerEdit):
    """A composer that measures the time from a key press until its character is painted."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.pressed: deque[float] = deque()  # time of each key press that is not painted yet
        self.waits: list[float] = []  # seconds from each key press until it was painted
        self._shown = 0

    @override
    def paintEvent(self, e: QPaintEvent) -> None:
        super().paintEvent(e)
        num_shown = self.document().characterCount() - 1
        while self.pressed and self._shown < num_shown:
            self.waits.append(perf_counter() - self.pressed.popleft())
            self._shown += 1


def bench_answer(theme: Theme, text: str, *, in_browser: bool) -> float:
    """Stream an answer while keys are typed. Return gap_p95_ms of the main thread (see Gaps)."""
    window = QWidget()
    column = QVBoxLayout(window)
    view = QTextBrowser(window) if in_browser else TimedView(theme, NEW)
    edit = TimedEdit(window)
    column.addWidget(view, 1)
    column.addWidget(edit)
    window.resize(*SIZE)
    window.show()
    window.activateWindow()
    edit.setFocus()
    wait_ms(200)  # wait until the window is active: inactive windows are painted less often
    item = TranscriptItem(key=NEW, role=Role.ASSISTANT, text="", status=ItemStatus.STREAMING)
    if isinstance(view, TimedView):
        view.set_items([TranscriptItem(key="ask", role=Role.USER, text="Write a lot."), item])
        view.jump_to_latest()
    source, shown = AnswerSource(text, 150), [""]
    flush = QTimer(singleShot=True, interval=33)

    def take(piece: str) -> None:
        shown[0] += piece
        if isinstance(view, TimedView):
            view.append_delta(NEW, Channel.ANSWER, piece)
        elif not flush.isActive():
            flush.start()

    def show_all() -> None:
        if isinstance(view, TimedView):
            view.finish(replace(item, text=text, status=ItemStatus.COMPLETE))
        else:
            view.setMarkdown(shown[0])
            view.verticalScrollBar().setValue(view.verticalScrollBar().maximum())

    flush.timeout.connect(show_all)
    typist = Typist(edit)
    figures = play(source, take, show_all).figures()
    typist.stop()
    own: dict[str, object] = {}
    if isinstance(view, TimedView):
        own = {
            "latency_p95_ms": ms(quantile(view.latencies, 0.95)),
            "latency_max_ms": ms(max(view.latencies)),
            "complete": view.text_of(NEW) == text,
        }
    report(
        "transcript.answer",
        browser=in_browser,
        tokens=source.num_tokens,
        active=window.isActiveWindow(),
        key_p95_ms=ms(quantile(edit.waits, 0.95)),
        key_max_ms=ms(max(edit.waits)),
        **own,
        **figures,
    )
    window.close()
    window.deleteLater()
    return figures["gap_p95_ms"]


def bench_answers(theme: Theme, text: str) -> None:
    ours = bench_answer(theme, text, in_browser=False)
    theirs = bench_answer(theme, text, in_browser=True)
    report("transcript.answer", browser_to_ours_gap_p95=round(theirs / ours, 2))


def ms(seconds: float) -> float:
    return round(seconds * 1000, 2)


def quantile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def report(name: str, **figures: object) -> None:
    sys.stdout.write(json.dumps({"benchmark": name, **figures}) + "\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="a short answer, fewer messages")
    parser.add_argument("--only", choices=["answer", "find"])
    args = parser.parse_args()
    quick = args.quick
    switch_threads_often()
    app = QApplication([])
    theme = Theme(app, Appearance.LIGHT)
    # Exclude all present objects from garbage collection, as app.main does.
    GarbageSearch(app).spare_all()
    if args.only == "find":
        bench_find(theme, 4000)
        return
    bench_answers(theme, answer_text(2, 2) if quick else answer_text(20, 4))
    if args.only:
        return
    num_messages = 200 if quick else 2000
    bench_open(theme, num_messages)
    bench_huge(theme)
    bench_scroll(theme, num_messages)
    bench_settle(theme, num_messages)
    bench_find(theme, num_messages)
    text = answer_text(2, 2) if quick else answer_text(10, 2)
    for follow in (True, False):
        bench_stream(theme, text, tokens_per_s=150, follow=follow)


if __name__ == "__main__":
    main()
