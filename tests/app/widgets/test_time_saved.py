"""Time saved: measured, counted once for each answer, kept, and shown."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtWidgets import QDialog

from app.conversation.tree import shown_path
from app.settings import Settings
from app.widgets.commands import CommandId
from app.widgets.line_height import Sentences
from engine.events import PrefillProgress, RequestStarted
from engine.types import RequestId
from engine.usage import PromptPlan, Usage
from tests.app.conftest import MakeStage
from tests.fakes.rig import FakeCatalog, card
from tests.fakes.stage import Stage

# 1,000 tokens are read in 2.5 s: 400 tokens per second.
READ_S = 2.5
FIRST = PromptPlan(prompt_tokens=1_000, restored=0, replayed=0, read=1_000)
# The fake engine restores in 6 ms.
NEXT = PromptPlan(prompt_tokens=2_010, restored=2_000, replayed=0, read=10)
NEXT_MS = 2_000 / 400 * 1000 - 6.0
DAY_S = 24 * 3600.0


def measure(stage: Stage) -> None:
    """Answer a message whose prompt is read in READ_S."""
    stage.engine.plan = FIRST
    stage.send("Hello")
    stage.rig.origin.tick_s += READ_S - 0.02  # each look at the fake clock takes 0.01 s
    stage.engine.prefill(1_000, 1_000)
    stage.answer("Hi")


def ask(stage: Stage, plan: PromptPlan = NEXT) -> None:
    stage.engine.plan = plan
    stage.chat("And?", "So")


def usage_of(stage: Stage) -> Usage:
    generation = shown_path(stage.core.desk.get(stage.current))[-1].generation
    assert generation is not None
    assert generation.usage is not None
    return generation.usage


def page_texts(stage: Stage) -> list[str]:
    stage.run(CommandId.REMEMBERING)
    page = stage.window.findChild(QDialog, "remembering")
    assert page is not None
    texts = [one.text() for one in page.findChildren(Sentences)]
    page.close()
    stage.wait(0)
    return texts


def test_answer_without_a_measured_rate_saved_nothing(stage: Stage) -> None:
    ask(stage)
    assert usage_of(stage).saved_ms == 0.0
    assert stage.core.time_saved.total_s == 0.0
    assert not any("Saved" in text for text in stage.items[-1].state_line.explained.split("\n"))  # pyright: ignore[reportOptionalMemberAccess]
    assert not any("of reading." in text for text in page_texts(stage))


def test_restored_tokens_save_the_time_of_reading_them_at_the_measured_rate(stage: Stage) -> None:
    measure(stage)
    assert usage_of(stage).saved_ms == 0.0, "nothing was restored"
    ask(stage)
    assert usage_of(stage).saved_ms == pytest.approx(NEXT_MS, rel=0.02)
    line = stage.items[-1].state_line
    assert line is not None
    assert "Saved about 5 s of reading." in line.explained
    assert stage.core.time_saved.total_s == pytest.approx(NEXT_MS / 1000, rel=0.02)
    assert "Today about 5 s. In all about 5 s of reading." in page_texts(stage)


def test_tokens_read_ahead_or_far_beyond_the_measured_ones_do_not_count(stage: Stage) -> None:
    measure(stage)
    ask(stage, replace(NEXT, restored_ahead=1_000))
    assert usage_of(stage).saved_ms == pytest.approx(1_000 / 400 * 1000 - 6.0, rel=0.02)
    ask(stage, PromptPlan(prompt_tokens=90_010, restored=90_000, replayed=0, read=10))
    assert usage_of(stage).saved_ms == pytest.approx(4_000 / 400 * 1000 - 6.0, rel=0.02)
    ask(stage, PromptPlan(prompt_tokens=12, restored=2, replayed=0, read=10))
    assert usage_of(stage).saved_ms == 0.0, "restoring took longer than reading"


def test_each_request_is_counted_once_and_deleted_chats_stay_counted(stage: Stage) -> None:
    measure(stage)
    ask(stage)
    once = stage.core.time_saved.total_s
    stage.run(CommandId.REGENERATE)
    stage.answer("Another")
    assert stage.core.time_saved.total_s == pytest.approx(2 * once)
    stage.core.deletions.delete_all((stage.current,))
    stage.settle()
    assert stage.core.time_saved.total_s == pytest.approx(2 * once)


def test_stopped_answer_counts_with_a_word_and_without_one_it_does_not(stage: Stage) -> None:
    measure(stage)
    stage.engine.plan = NEXT
    stage.send("And?")
    stage.run(CommandId.STOP)
    assert stage.core.time_saved.total_s == 0.0
    stage.send("And now?")
    stage.engine.write("So")
    stage.run(CommandId.STOP)
    assert stage.core.time_saved.total_s == pytest.approx(NEXT_MS / 1000, rel=0.02)


def test_sums_and_rates_outlast_the_app(make_stage: MakeStage) -> None:
    stage = make_stage()
    measure(stage)
    ask(stage)
    total = stage.core.time_saved.total_s
    stage.close()
    later = make_stage()
    assert later.core.time_saved.today_s == later.core.time_saved.total_s == pytest.approx(total)
    expected = later.core.reading_rate.time(0, 2_000)
    assert expected is not None
    assert expected.seconds == pytest.approx(5.0, rel=0.02)
    ask(later)
    assert usage_of(later).saved_ms == pytest.approx(NEXT_MS, rel=0.02)
    assert later.core.time_saved.total_s == pytest.approx(2 * total, rel=0.02)


def test_rate_belongs_to_its_model_and_is_back_with_it(make_stage: MakeStage) -> None:
    models = (card(), card("Other-2B"))
    stage = make_stage(catalog=FakeCatalog(cards=models))
    measure(stage)
    stage.core.models.choose(models[1].path)
    stage.settle()
    assert stage.core.reading_rate.time(0, 2_000) is None
    ask(stage)
    assert usage_of(stage).saved_ms == 0.0
    stage.core.models.choose(models[0].path)
    stage.settle()
    assert stage.core.reading_rate.time(0, 2_000) is not None


def test_answer_that_a_change_of_the_model_ends_is_no_measurement_of_the_new_one(
    make_stage: MakeStage,
) -> None:
    models = (card(), card("Other-2B"))
    stage = make_stage(catalog=FakeCatalog(cards=models))
    stage.engine.plan = FIRST
    stage.send("Hello")
    stage.engine.write("Hi")
    assert stage.core.models.load_for_program(models[1].path)
    stage.wait_until(lambda: not stage.core.turns.live)
    assert stage.core.reading_rate.time(0, 2_000) is None


def test_days_have_their_own_sums_whatever_the_clock_does(stage: Stage) -> None:
    saved, origin = stage.core.time_saved, stage.rig.origin
    noon = origin.time_s
    stage.core.turns.time_saved.emit(60_000.0)
    origin.time_s = noon + 400 * DAY_S  # set forward by mistake
    assert (saved.today_s, saved.total_s) == (0.0, 60.0)
    assert "In all about 60 s of reading." in page_texts(stage)
    stage.core.turns.time_saved.emit(1_000.0)
    origin.time_s = noon
    stage.core.turns.time_saved.emit(5_000.0)
    assert (saved.today_s, saved.total_s) == (65.0, 66.0)
    for number in range(30):
        origin.time_s = noon + number * DAY_S
        stage.core.turns.time_saved.emit(1_000.0)
    assert (saved.today_s, saved.total_s) == (1.0, 96.0)


def test_long_reading_is_announced_with_its_time_after_a_restart(make_stage: MakeStage) -> None:
    stage = make_stage()
    measure(stage)
    stage.close()
    later = make_stage(settings=Settings(return_noted=True))
    before = len(later.engine.counts)
    later.composer.set_text("word " * 7_000)
    later.pane.draft.flush()
    later.wait_until(lambda: len(later.engine.counts) > before)
    later.settle()
    assert "tokens, 22 s or more" in later.composer.caption or "22 s" in later.composer.caption


def test_reading_beside_another_answer_is_not_measured(stage: Stage) -> None:
    measure(stage)
    rate = stage.core.reading_rate
    before = rate.time(0, 1_000)
    first, second = RequestId("first"), RequestId("second")
    stage.engine.on_event(RequestStarted(first, FIRST, 0.0))
    stage.engine.on_event(RequestStarted(second, FIRST, 0.0))
    stage.settle()
    stage.rig.origin.tick_s += 100.0
    for request_id in (first, second):
        stage.engine.on_event(PrefillProgress(request_id, 1_000, 1_000, None))
    stage.settle()

    assert rate.time(0, 1_000) == before
