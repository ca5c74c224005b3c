"""Long reading is announced before a message is sent."""

from __future__ import annotations

import pytest
from PySide6.QtTest import QTest

from app.controllers import prompt_size
from app.widgets.commands import CommandId
from app.widgets.transcript.editor.editor import MessageEditor, TypedEdit
from app.widgets.transcript.rows.row import RowAction
from engine.events import IdleKind
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
    stage.pane.flush()
    stage.wait_until(lambda: len(stage.engine.counts) > before)
    stage.settle()


def ask(stage: Stage, text: str) -> None:
    """Send a text that would take long to type, and answer it."""
    assert stage.rig.chat.send(stage.current, text)
    stage.settle()
    stage.answer("Good.")


def test_long_draft_is_announced_with_its_tokens_and_sent_with_one_click(stage: Stage) -> None:
    draft(stage, LONG)
    assert stage.composer.caption == (f"{NAME} will read before it answers: about 4,400 tokens.")
    QTest.keyClick(stage.edit, Key.Key_Return)
    stage.settle()
    assert len(stage.engine.submitted) == 1
    assert "will read" not in stage.composer.caption


def test_read_part_of_a_draft_is_not_announced(stage: Stage) -> None:
    stage.engine.num_cached = 2_000
    draft(stage, LONG)
    assert "will read" not in stage.composer.caption


def test_long_chat_that_was_read_fast_is_not_announced(stage: Stage) -> None:
    ask(stage, LONG)
    stage.wait_until(lambda: bool(stage.engine.counts))
    stage.settle()
    assert "will read" not in stage.composer.caption, "40,000 tokens per second"


def test_long_chat_is_announced_until_it_is_read_ahead(stage: Stage) -> None:
    stage.chat("Hello", "Hi")
    for done in range(0, 17_000, 1_000):
        stage.engine.work_idly(done, 20_400, shown=stage.current)
        stage.settle()
        stage.rig.origin.tick_s += 10.0
    assert stage.composer.caption == (
        f"{NAME} will read before it answers: about 4,400 tokens, 44 s."
    )
    stage.engine.work_idly(19_600, 20_400, IdleKind.READ_AHEAD, shown=stage.current)
    stage.settle()
    assert "will read" not in stage.composer.caption, "the rest takes less than 10 s"


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
    note = f"{NAME} will read before it answers: about 4,400 tokens."
    assert editor_of(stage).cost == note
    assert "will read" not in stage.composer.caption
    field = editor_of(stage).focusProxy()
    assert field is not None
    QTest.keyClicks(field, "!")
    assert editor_of(stage).cost == note, "it stays until the prompt is counted again"
    editor_of(stage).set_typed(TypedEdit("Hello.", 0, 0))
    stage.wait_until(lambda: not editor_of(stage).cost)
    assert editor_of(stage).height() == low


def test_edit_of_an_answer_announces_what_the_next_message_makes_the_model_read(
    stage: Stage,
) -> None:
    stage.chat("Hello", "Hi")
    stage.click(RowAction.EDIT_ANSWER)
    type_in_editor(stage, LONG)
    assert [one.content for one in stage.engine.counts[-1].messages] == ["Hello", LONG]
    assert editor_of(stage).cost == f"{NAME} will read before it answers: about 4,400 tokens."
