"""Tests of the sentence, the note and the page about what Rejoinder remembers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QDialog

from app.settings import Settings
from app.viewmodels.state_line import LONG_WAIT_MS
from app.widgets.button import Button
from app.widgets.color_dot import ColorDot
from app.widgets.commands import CommandId
from app.widgets.remembering import MemoryPicture
from app.widgets.scroller import VerticalScroller
from app.words import promise as words
from engine.types import ConversationId
from engine.usage import PromptPlan
from tests.app.conftest import MakeStage
from tests.fakes.pixels import pixels_of
from tests.fakes.stage import Key, Stage

# The fake engine needs 100 ms for the tokens that a request reads: 4,000 tokens per second.
FIRST = PromptPlan(prompt_tokens=400, restored=0, replayed=0, read=400)
# The prompt is much longer than the measured ones.
RETURN = PromptPlan(prompt_tokens=20_000, restored=19_990, replayed=0, read=10)
NOTE = (
    "Rejoinder remembered this chat: 19,990 tokens were restored in 6 ms."
    " Reading them again would have taken an estimated 5 s or more."
)


def chat(stage: Stage, plan: PromptPlan) -> ConversationId:
    stage.engine.plan = plan
    stage.chat("Hello", "Hi")
    return stage.current


def go_back(stage: Stage, plan: PromptPlan = RETURN) -> None:
    """Answer in one chat, then in another, then in the first one again."""
    first = chat(stage, FIRST)
    stage.run(CommandId.NEW_CHAT)
    chat(stage, FIRST)
    stage.rig.library.select(first)
    chat(stage, plan)


def test_first_window_tells_what_is_remembered_until_there_is_a_chat(stage: Stage) -> None:
    promise = stage.pane.empty.promise
    assert promise.isVisible()
    assert promise.text() == words.SENTENCE
    stage.chat("Hello", "Hi")
    stage.run(CommandId.NEW_CHAT)
    assert stage.pane.empty.heading.isVisible()
    assert not promise.isVisible()


def test_first_return_that_spared_seconds_is_noted_once(make_stage: MakeStage) -> None:
    stage = make_stage()
    note = stage.pane.return_note
    chat(stage, FIRST)
    chat(stage, RETURN)
    assert not note.isVisible(), "the user has not left the chat"
    go_back(stage)
    assert note.isVisible()
    assert note.sentence.text() == NOTE
    QTest.mouseClick(note.second, Qt.MouseButton.LeftButton)
    assert not note.isVisible()
    go_back(stage)
    assert not note.isVisible()
    assert stage.core.preferences.value.return_noted
    stage.close()
    later = make_stage(settings=Settings(return_noted=True))
    go_back(later)
    assert not later.pane.return_note.isVisible()


def test_return_that_spared_little_is_not_noted(stage: Stage) -> None:
    go_back(stage, PromptPlan(prompt_tokens=900, restored=890, replayed=0, read=10))
    assert not stage.pane.return_note.isVisible()
    assert not stage.core.preferences.value.return_noted


@pytest.mark.parametrize("num_ahead", [600, 19_000])
def test_return_is_noted_with_the_tokens_of_the_line_unless_they_were_read_ahead(
    stage: Stage, num_ahead: int
) -> None:
    first = chat(stage, FIRST)
    stage.run(CommandId.NEW_CHAT)
    chat(stage, FIRST)
    stage.rig.library.select(first)
    chat(stage, replace(RETURN, restored_ahead=num_ahead))
    line = stage.items[-1].state_line
    assert line is not None
    assert line.text.startswith("Restored 19,990 tokens · ")
    assert f"{num_ahead:,} tokens of those restored were read ahead" in line.explained
    note = stage.pane.return_note
    assert note.isVisible() == (num_ahead == 600)
    if num_ahead == 600:
        assert note.sentence.text() == NOTE


def test_answer_after_a_restart_is_a_return_with_the_rate_of_the_chat(
    make_stage: MakeStage,
) -> None:
    before = make_stage()
    selected = chat(before, FIRST)
    before.close()
    stage = make_stage(settings=Settings(selected_conversation=selected))
    stage.wait_until(lambda: len(stage.texts) == 2)
    chat(stage, RETURN)
    assert stage.pane.return_note.sentence.text() == NOTE


def test_return_without_a_measured_rate_is_noted_later(stage: Stage) -> None:
    short = PromptPlan(prompt_tokens=30, restored=0, replayed=0, read=30)
    first = chat(stage, short)
    stage.run(CommandId.NEW_CHAT)
    second = chat(stage, short)
    stage.rig.library.select(first)
    chat(stage, RETURN)
    assert not stage.pane.return_note.isVisible()
    chat(stage, FIRST)
    stage.rig.library.select(second)
    chat(stage, RETURN)
    assert stage.pane.return_note.isVisible()
    stage.run(CommandId.NEW_CHAT)
    assert not stage.pane.return_note.isVisible(), "the note belongs to the chat"


def test_page_opens_from_the_help_menu_and_from_the_note(stage: Stage) -> None:
    stage.run(CommandId.REMEMBERING)
    page = stage.window.findChild(QDialog, "remembering")
    assert page is not None
    picture = page.findChild(MemoryPicture)
    assert picture is not None
    assert picture.accessibleName() == words.PICTURE
    dots = page.findChildren(ColorDot)
    colors = {pixels_of(dot.grab().toImage())[dot.height() // 2, dot.width() // 2] for dot in dots}
    assert len(colors) == len(dots) == 4
    assert f"within {LONG_WAIT_MS // 1000} seconds" in words.GREEN
    (scroller,) = page.findChildren(VerticalScroller)
    done = page.focusWidget()
    assert isinstance(done, Button)
    page.resize(page.width(), 200)
    QTest.keyClick(done, Key.Key_PageDown)
    QTest.keyClick(done, Key.Key_Down)
    assert scroller.bar.value() > 100
    QTest.keyClick(page, Key.Key_Escape)
    stage.settle()
    go_back(stage)
    QTest.mouseClick(stage.pane.return_note.first, Qt.MouseButton.LeftButton)
    page = stage.window.findChild(QDialog, "remembering")
    assert page is not None
    assert page.isVisible()
    assert not stage.pane.return_note.isVisible()


def test_first_answer_of_a_chat_that_restores_documents_is_no_return(stage: Stage) -> None:
    chat(stage, FIRST)
    stage.run(CommandId.NEW_CHAT)
    first = chat(stage, RETURN)  # as in a folder with documents
    assert not stage.pane.return_note.isVisible()
    stage.run(CommandId.NEW_CHAT)
    chat(stage, FIRST)
    stage.rig.library.select(first)
    chat(stage, RETURN)
    assert stage.pane.return_note.isVisible()
