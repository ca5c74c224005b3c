"""The window "Why Was This Read?" and the time saved, with the counters of a real engine.

The causes are those of test_state_lines.py. The models are tiny hybrids and transformers.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel

from app.cli.client import load_model
from app.cli.player import StepReport
from app.conversation.tree import Setup, shown_path
from app.viewmodels.phases import Planned
from app.viewmodels.read_reasons import AdviceFacts, ReadReport, TokenOrigin, read_report
from app.widgets.commands import CommandId
from app.widgets.why_window import MessageLink, WhyWindow
from app.words import reasons as words
from engine.usage import PromptPlan, Usage
from tests.e2e.test_state_lines import (
    LONG,
    all_evicted,
    answer_rendered,
    end_edited,
    first_message,
    forgotten,
    larger_than_the_budget,
    next_message,
    regenerated,
    snapshots_evicted,
    start_edited,
    state_faulty,
    system_prompt_changed,
    thinking_dropped,
    thinking_switched_off,
)
from tests.fakes.chats import Chats
from tests.fakes.engine_fixtures import OpenTiny, TinyModel
from tests.fakes.real_window import RealWindow
from tests.fakes.tiny_model import Template

Rows = list[tuple[str, tuple[int, ...]]]
KEEPING, THINKING = Template.KEEPING, Template.THINKING
# Cause, template, and the sentence and the messages of each row. Messages count from 1.
CAUSES: list[tuple[Callable[[Chats], StepReport], Template, Rows]] = [
    (first_message, KEEPING, [(words.NEW, (1,))]),
    (next_message, KEEPING, [(words.NEW, (3,))]),
    (regenerated, KEEPING, []),
    (end_edited, KEEPING, [(words.NOT_KEPT, (3,)), (words.ADDED, (3,))]),
    (start_edited, KEEPING, [(words.EDITED, (3,))]),
    (
        system_prompt_changed,
        KEEPING,
        [(words.SYSTEM_CHANGED, (0,)), (words.SYSTEM_CHANGED, (0,)), (words.NEW, (3,))],
    ),
    (snapshots_evicted, KEEPING, [(words.MADE_ROOM, (1,)), (words.NEW, (3,))]),
    (all_evicted, KEEPING, [(words.MADE_ROOM, (1,)), (words.NEW, (3,))]),
    (larger_than_the_budget, KEEPING, [(words.CHAT_TOO_LARGE, (1,)), (words.NEW, (3,))]),
    (state_faulty, KEEPING, [(words.FAULTY, (1,)), (words.NEW, (3,))]),
    (forgotten, KEEPING, [(words.NOT_KEPT, (1,)), (words.NEW, (3,))]),
    (thinking_dropped, THINKING, [(words.THINKING_DROPPED, (2,)), (words.NEW, (3,))]),
    (thinking_switched_off, THINKING, [(words.OPTIONS_CHANGED, (1,))]),
    (answer_rendered, THINKING, [(words.TEXT_RENDERED, (2,)), (words.NEW, (3,))]),
]


def report_of(step: StepReport) -> ReadReport:
    plan = PromptPlan(
        prompt_tokens=step.prompt_tokens,
        restored=step.restored,
        restored_disk=step.restored_disk,
        replayed=step.replayed,
        read=step.read,
        reasons=step.reasons,
    )
    return read_report(Planned(plan=plan, restore_ms=1.0, wait_ms=10.0), AdviceFacts())


def check_counters(report: ReadReport, plan: PromptPlan | StepReport) -> None:
    """Assert that the parts and the rows add up to the engine's counters."""
    counts = {part.origin: part.num_tokens for part in report.parts}
    assert sum(counts.values()) == plan.prompt_tokens
    assert counts.get(TokenOrigin.DISK, 0) == plan.restored_disk
    assert counts.get(TokenOrigin.MEMORY, 0) == plan.restored - plan.restored_disk
    assert counts.get(TokenOrigin.AGAIN, 0) == plan.replayed
    assert counts.get(TokenOrigin.FIRST, 0) == plan.read
    for is_again, count in ((True, plan.replayed), (False, plan.read)):
        rows = [row.num_tokens for row in report.rows if row.is_again == is_again]
        assert sum(rows) == count


@pytest.mark.parametrize(
    ("cause", "template", "rows"), CAUSES, ids=[cause.__name__ for cause, _, _ in CAUSES]
)
def test_rows_have_the_sentences_messages_and_counters_of_the_cause(
    cause: Callable[[Chats], StepReport],
    template: Template,
    rows: Rows,
    open_tiny: OpenTiny,
) -> None:
    step = cause(Chats(open_tiny(template=template)))
    report = report_of(step)
    check_counters(report, step)
    assert [(row.sentence, row.messages) for row in report.rows] == rows


def test_reload_of_the_model_is_explained(open_tiny: OpenTiny, tiny_model: TinyModel) -> None:
    chats = Chats(open_tiny())
    chats.send(LONG)
    for name in ("llama", "qwen3_5"):
        load_model(chats.client, tiny_model(name, KEEPING), lambda _: None)
    step = chats.send("two")
    report = report_of(step)
    check_counters(report, step)
    assert [row.sentence for row in report.rows] == [words.MODEL_RELOADED, words.NEW]


def launch(real: RealWindow, model: Path) -> None:
    real.close()
    real.launch(model)
    real.core.preferences.change(read_ahead=False)
    real.limit_answers(model, Setup(max_tokens=4))
    real.wait_until(lambda: real.core.models.status.facts is not None)
    real.settle()


def ask(real: RealWindow, text: str) -> Usage:
    real.edit.setPlainText(text)
    QTest.keyClick(real.edit, Qt.Key.Key_Return)
    real.wait_until(lambda: not real.core.turns.live)
    generation = shown_path(real.core.desk.get(real.current))[-1].generation
    assert generation is not None
    assert generation.usage is not None
    return generation.usage


def check_window(real: RealWindow, usage: Usage) -> WhyWindow:
    """Open the window and assert that it shows the counters of a usage."""
    real.run(CommandId.WHY_READ)
    window = real.window.findChild(WhyWindow)
    assert isinstance(window, WhyWindow)
    plan = usage.plan
    counts = {
        words.from_memory: plan.restored - plan.restored_disk,
        words.from_disk: plan.restored_disk,
        words.read_again: plan.replayed,
        words.read_first: plan.read,
    }
    texts = [one.text() for one in window.findChildren(QLabel) if one.isVisible()]
    expected = [label(tokens(count)) for label, count in counts.items() if count]
    assert texts[: len(expected) + 1] == [words.heading(tokens(plan.prompt_tokens)), *expected]
    return window


def tokens(count: int) -> str:
    return "1 token" if count == 1 else f"{count:,} tokens"


@pytest.mark.slow
@pytest.mark.qt_log_ignore("does not support raise", extend=True)
@pytest.mark.usefixtures("qtbot")
def test_window_and_time_saved_follow_the_engine_over_restarts(
    tiny_model: TinyModel, tmp_path: Path
) -> None:
    model = tiny_model("qwen3_5", KEEPING)
    with closing(RealWindow(tmp_path)) as real:
        launch(real, model)
        short = ask(real, "one")
        check_window(real, short)
        usage = ask(real, "two")
        assert usage.plan.restored > 0
        assert usage.saved_ms == 0.0, "no rate was measured"
        assert real.core.time_saved.total_s == 0.0
        check_window(real, usage)

        before_ms = ask(real, LONG * 3).saved_ms  # measures a rate
        assert real.core.reading_rate.time(0, 1) is not None
        usage = ask(real, "three")
        plan = usage.plan
        assert plan.restored > 200
        window = check_window(real, usage)
        assert [type(one) for one in window.controls] == [MessageLink]
        saved_ms = before_ms + usage.saved_ms
        assert real.core.time_saved.total_s == pytest.approx(saved_ms / 1000)

        launch(real, model)
        assert real.core.time_saved.total_s == pytest.approx(saved_ms / 1000)
        check_window(real, usage)
        needed = real.core.reading_rate.time(0, plan.restored)
        assert needed is not None, "the rate was kept"
        usage = ask(real, "four")
        assert usage.plan.restored_disk == usage.plan.restored > 200
        needed = real.core.reading_rate.time(0, usage.plan.restored)
        assert needed is not None
        expected = max(0.0, needed.seconds * 1000 - usage.restore_ms)
        assert usage.saved_ms == pytest.approx(expected, rel=0.01, abs=0.01)
        assert real.core.time_saved.total_s == pytest.approx((saved_ms + usage.saved_ms) / 1000)
        check_window(real, usage)
