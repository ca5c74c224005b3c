"""Work of the main thread while several answers are streamed side by side.

    QT_QPA_PLATFORM=offscreen python -m tests.benchmarks.answer_columns [--quick]

Prints a JSON line for 1 answer and one for 4, each at 60 tokens per second with code, lists and formulas:
the gaps between the ticks of a timer on the main thread, and the share of a core that the process takes.
"""

from __future__ import annotations

import argparse
from time import perf_counter, process_time

from PySide6.QtWidgets import QApplication

from app.bridge.garbage import GarbageSearch
from app.settings import Appearance
from app.theme.palette import Theme
from app.thread_switching import switch_threads_often
from app.viewmodels.answers import AnswerColumnItem
from app.viewmodels.transcript import ItemStatus, TranscriptItem
from app.widgets.answers.pane import AnswersPane
from app.widgets.transcript.view import TranscriptView
from engine.types import Channel, Role
from tests.benchmarks.bench_transcript import AnswerSource, answer_text, play, report, wait_ms

SIZE = (1240, 640)
TOKENS_PER_S = 60.0


def item(number: int, text: str, status: ItemStatus) -> AnswerColumnItem:
    value = TranscriptItem(
        key=f"answer-{number}", role=Role.ASSISTANT, text=text, status=status, is_column=True
    )
    return AnswerColumnItem(number, value, f"Seed {number}", can_regenerate=False)


def measure(theme: Theme, text: str, count: int) -> None:
    """Stream a text into some columns, and report the figures."""
    transcript = TranscriptView(theme)
    pane = AnswersPane(theme, transcript)
    pane.resize(*SIZE)
    pane.show()
    pane.activateWindow()
    numbers = range(1, count + 1)
    pane.show_answers("Why?", [item(at, "", ItemStatus.STREAMING) for at in numbers])
    wait_ms(200)
    keys = [column.item.key for column in pane.columns]

    def take(piece: str) -> None:
        for key in keys:
            pane.append_delta(key, Channel.ANSWER, piece)

    def finish() -> None:
        pane.show_answers("Why?", [item(at, text, ItemStatus.COMPLETE) for at in numbers])

    started, used = perf_counter(), process_time()
    gaps = play(AnswerSource(text, TOKENS_PER_S), take, finish)
    used, spent = process_time() - used, perf_counter() - started
    report(
        "answers.columns",
        answers=count,
        active=pane.isActiveWindow(),
        core_share=round(used / spent, 3),
        complete=all(column.view.text_of(column.item.key) == text for column in pane.columns),
        **gaps.figures(),
    )
    pane.close()
    pane.deleteLater()
    transcript.deleteLater()
    wait_ms(50)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="a short answer")
    args = parser.parse_args()
    switch_threads_often()
    app = QApplication([])
    theme = Theme(app, Appearance.LIGHT)
    GarbageSearch(app).spare_all()
    text = answer_text(2, 2) if args.quick else answer_text(6, 3)
    for count in (1, 4):
        measure(theme, text, count)


if __name__ == "__main__":
    main()
