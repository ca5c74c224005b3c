"""Long reading is announced before a message is sent."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtTest import QTest

from app.controllers import prompt_size
from app.widgets.commands import CommandId
from app.widgets.transcript.editor.editor import MessageEditor, TypedEdit
from app.widgets.transcript.rows.row import RowAction
from engine.events import IdleKind
from engine.types import ConversationId
from engine.usage import PromptPlan
from tests.app.conftest import MakeStage
from tests.fakes.stage import Key, Stage

LONG = "word " * 3_500  # the fake engine counts 4,379 tokens
NAME = "Tiny 9B 4-bit"


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prompt_size, "COUNT_MS", 0)


def draft(stage: Stage, text: str) -> None:
    """Put a text into the composer, save it, and wait until its tokens are counted."""
    before = len(stage.engine.counts)
    stage.composer.set_text(text)
    stage.pane.draft.flush()
    stage.wait_until(lambda: len(stage.engine.counts) > before)
    stage.settle()


def ask(stage: Stage, text: str) -> None:
    """Send a text that would take long to type, and answer it."""
    assert stage.rig.chat.send(stage.current, text)
    stage.settle()
    stage.answer("Good.")


def test_long_draft_is_announced_with_its_tokens_and_sent_with_one_click(stage: Stage) -> None:
    draft(stage, LONG)
    assert stage.composer.caption == "Reads all 4,379 tokens"
    QTest.keyClick(stage.edit, Key.Key_Return)
    stage.settle()
    assert len(stage.engine.submitted) == 1
    assert "Reads" not in stage.composer.caption


def test_read_part_of_a_draft_does_not_count(stage: Stage) -> None:
    stage.engine.num_cached = 4_000
    draft(stage, LONG)
    assert stage.composer.caption == "Reads 379 tokens"


def test_draft_that_a_slow_machine_reads_for_a_minute_is_announced_before_any_measurement(
    stage: Stage,
) -> None:
    draft(stage, "word " * 2_820)
    assert stage.composer.caption == "Reads all 3,529 tokens"


def test_long_chat_that_was_read_fast_is_not_announced(stage: Stage) -> None:
    ask(stage, LONG)
    stage.wait_until(lambda: bool(stage.engine.counts))
    stage.settle()
    assert "will first read" not in stage.composer.caption, "40,000 tokens per second"


def test_long_chat_is_announced_until_it_is_read_ahead(stage: Stage) -> None:
    stage.chat("Hello", "Hi")
    for done in range(0, 17_000, 1_000):
        stage.engine.work_idly(done, 20_400, shown=stage.current)
        stage.settle()
        stage.rig.origin.tick_s += 10.0
    assert stage.composer.caption == (f"{NAME} will first read about 4,400 tokens, 44 s.")
    stage.engine.work_idly(19_600, 20_400, IdleKind.READ_AHEAD, shown=stage.current)
    stage.settle()
    assert "will first read" not in stage.composer.caption, "the rest takes less than 10 s"


def test_reading_of_another_version_is_not_announced_and_delays_no_count(stage: Stage) -> None:
    stage.chat("Hello", "Hi")
    stage.run(CommandId.REGENERATE)
    stage.answer("Good day")
    for done in range(0, 17_000, 1_000):
        stage.engine.work_idly(done, 20_400, shown=stage.current)
        stage.settle()
        stage.rig.origin.tick_s += 10.0
    assert "will first read" in stage.composer.caption
    before = len(stage.engine.counts)
    stage.run(CommandId.PREVIOUS_VERSION)
    stage.engine.work_idly(
        16_500, 20_400, shown=stage.current
    )  # until the engine hears of the change
    stage.wait_until(lambda: len(stage.engine.counts) > before)
    stage.settle()
    assert "will first read" not in stage.composer.caption
    stage.engine.work_idly(0, 9_000, shown=stage.current)
    stage.settle()
    assert "will first read about 9,000 tokens" in stage.composer.caption


def test_chat_is_counted_when_another_one_is_read_ahead_after_it(stage: Stage) -> None:
    ask(stage, LONG)
    stage.engine.work_idly(0, 4_000, shown=stage.current)
    stage.settle()
    assert not stage.core.prompt_sizes.is_counted
    stage.engine.work_idly(0, 9_000, shown=ConversationId("other"))
    stage.wait_until(lambda: stage.core.prompt_sizes.is_counted)


def test_another_model_has_no_rate_yet(stage: Stage) -> None:
    rate = stage.core.reading_rate
    ask(stage, LONG)
    assert rate.time(0, 1) is not None
    stage.engine.hold_load = True
    stage.rig.models.choose(stage.rig.models.cards[0].path.with_name("other"))
    assert rate.time(0, 1) is None


def editor_of(stage: Stage) -> MessageEditor:
    editor = stage.pane.view.findChild(MessageEditor)
    assert editor is not None
    return editor


def type_in_editor(stage: Stage, text: str) -> None:
    """Replace the text in the editor of a message, and wait until its prompt is counted."""
    stage.engine.commands.clear()
    editor_of(stage).set_typed(TypedEdit(text, 0, 0))
    stage.wait_until(lambda: bool(stage.engine.counts))
    stage.settle()


def test_long_edit_is_announced_in_the_editor_before_it_is_sent(stage: Stage) -> None:
    stage.chat("Hello", "Hi")
    stage.run(CommandId.EDIT_LAST)
    low = editor_of(stage).height()
    type_in_editor(stage, LONG)
    assert [one.content for one in stage.engine.counts[-1].messages] == [LONG]
    note = "Reads all 4,379 tokens"
    assert editor_of(stage).cost == note
    assert "Reads" not in stage.composer.caption, "the editor has the note"
    field = editor_of(stage).focusProxy()
    assert field is not None
    QTest.keyClicks(field, "!")
    assert editor_of(stage).cost == note, "it stays until the prompt is counted again"
    editor_of(stage).set_typed(TypedEdit("Hello.", 0, 0))
    stage.wait_until(lambda: editor_of(stage).cost == "Reads 5 tokens")
    assert editor_of(stage).height() >= low


def test_edit_of_an_answer_announces_what_the_next_message_makes_the_model_read(
    stage: Stage,
) -> None:
    stage.chat("Hello", "Hi")
    stage.click(RowAction.EDIT_ANSWER)
    type_in_editor(stage, LONG)
    assert [one.content for one in stage.engine.counts[-1].messages] == ["Hello", LONG]
    assert editor_of(stage).cost == f"{NAME} will first read about 4,400 tokens."


CHAT = f"This chat is too long for {NAME}: 8,256 of 8,192 tokens."
ANSWER = "word " * 3_280  # 4,104 tokens


@pytest.fixture
def full(make_stage: MakeStage) -> Stage:
    """A stage with a chat of three questions. Only the first two can be answered again."""
    stage = make_stage(hold_load=True)
    stage.engine.facts = replace(stage.engine.facts, context_len=8_192)
    stage.engine.finish_load()
    stage.wait_until(lambda: not stage.rig.models.status.will_be_ready)
    for question, reply in (("One", ANSWER), ("Two", ANSWER), ("Three", "word " * 25)):
        assert stage.rig.chat.send(stage.current, question)
        stage.settle()
        stage.answer(reply)
    stage.wait_until(lambda: stage.composer.caption == CHAT)
    return stage


def edit(stage: Stage, message: int) -> None:
    stage.pane.view.click_actions.requested.emit(stage.items[message].key, RowAction.EDIT)
    stage.settle()


def count(stage: Stage) -> None:
    """Wait until the prompt is counted."""
    stage.wait_until(lambda: stage.core.prompt_sizes.is_counted)
    stage.settle()


def press(stage: Stage, key: Key) -> None:
    """Press a key in the editor of a message."""
    field = editor_of(stage).focusProxy()
    assert field is not None
    QTest.keyClick(field, key)
    stage.settle()


def test_edit_that_fits_is_announced_though_the_whole_chat_is_too_long(full: Stage) -> None:
    edit(full, 2)
    count(full)
    assert editor_of(full).cost == "Reads all 4,112 tokens"


def test_edit_that_cannot_fit_says_so_before_it_is_sent(full: Stage) -> None:
    edit(full, 4)
    count(full)
    assert editor_of(full).cost == (
        f"The chat up to here is too long for {NAME}: 8,221 of 8,192 tokens."
    )
    full.engine.hold_counts = True
    press(full, Key.Key_Escape)
    assert full.composer.caption == CHAT, "the chat is as long as before, and not as its edit"


def test_edit_is_counted_while_its_chat_is_read_ahead(stage: Stage) -> None:
    stage.chat("Hello", "Hi")
    stage.run(CommandId.EDIT_LAST)
    stage.engine.work_idly(0, 9_000, shown=stage.current)
    type_in_editor(stage, LONG)
    assert editor_of(stage).cost == "Reads all 4,379 tokens"
    stage.engine.num_cached = 4_300
    stage.engine.work_idly(4_500, 9_000, shown=stage.current)
    stage.wait_until(lambda: editor_of(stage).cost == "Instant")


def test_reading_that_was_stopped_early_gives_the_time_of_the_next_edit(stage: Stage) -> None:
    stage.engine.hold_start = True
    stage.send("Hello")
    stage.engine.plan = PromptPlan(
        prompt_tokens=3_030, matched=0, restored=0, replayed=0, read=3_030, reasons=()
    )
    stage.engine.begin()
    stage.settle()
    stage.rig.origin.tick_s += 45.0
    stage.engine.prefill(300, 3_030)
    stage.settle()
    stage.pane.stop()
    stage.settle()
    stage.run(CommandId.EDIT_LAST)
    type_in_editor(stage, "word " * 2_400)
    assert editor_of(stage).cost == "Reads all 3,004 tokens, 8 min or more"


def test_answer_to_the_count_of_an_earlier_text_is_ignored(stage: Stage) -> None:
    stage.chat("Hello", "Hi")
    stage.run(CommandId.EDIT_LAST)
    stage.engine.hold_counts = True
    type_in_editor(stage, LONG)
    editor_of(stage).set_typed(TypedEdit("Hello.", 0, 0))
    stage.engine.finish_counts()
    stage.settle()
    assert editor_of(stage).cost == ""
    count(stage)
    assert editor_of(stage).cost == "Reads 5 tokens"


def test_caption_is_not_of_the_whole_chat_while_an_earlier_message_is_answered_again(
    full: Stage,
) -> None:
    full.engine.hold_start = full.engine.hold_counts = True
    draft(full, "And now?")  # the engine counts it after a long step
    assert full.composer.caption == CHAT
    edit(full, 2)
    assert "too long" not in full.composer.caption, "the editor has the note"
    press(full, Key.Key_Return)
    assert full.engine.submitted[-1].messages[-1].content == "Two"
    assert "too long" not in full.composer.caption, "it waits"
    full.engine.finish_counts()
    full.settle()
    assert "too long" not in full.composer.caption, "an answer about the earlier branch came late"
    full.engine.begin()
    full.settle()
    assert "too long" not in full.composer.caption
    full.answer("Good.")
    count(full)
    assert "too long" not in full.composer.caption


def test_caption_of_one_version_is_not_shown_with_another(full: Stage) -> None:
    edit(full, 2)
    press(full, Key.Key_Return)
    full.answer("Good.")
    full.pane.view.click_actions.requested.emit(full.items[2].key, RowAction.PREVIOUS_VERSION)
    full.wait_until(lambda: full.composer.caption == CHAT)
    full.engine.hold_counts = True
    full.pane.view.click_actions.requested.emit(full.items[2].key, RowAction.NEXT_VERSION)
    full.settle()
    assert "too long" not in full.composer.caption


def test_caption_goes_with_the_draft_that_made_the_chat_too_long(full: Stage) -> None:
    full.pane.view.click_actions.requested.emit(full.items[2].key, RowAction.DELETE)
    count(full)
    assert "too long" not in full.composer.caption
    draft(full, ANSWER)
    assert full.composer.caption.startswith("This chat is too long")
    full.engine.hold_counts = True
    full.composer.set_text("")
    full.pane.draft.flush()
    full.settle()
    assert "too long" not in full.composer.caption


def test_question_about_an_older_draft_is_withdrawn(stage: Stage) -> None:
    stage.engine.hold_counts = True
    draft(stage, LONG)
    withdrawn = stage.engine.num_withdrawn
    draft(stage, LONG + "And more.")
    assert stage.engine.num_withdrawn == withdrawn + 1


def test_draft_is_not_instant_while_a_program_is_answered(stage: Stage) -> None:
    ask(stage, LONG)
    stage.engine.num_cached = 10_000
    draft(stage, "And now?")
    assert stage.composer.caption == "Instant"
    stage.engine.is_busy = True
    draft(stage, "And then?")
    assert stage.composer.caption == "Reads nothing"
