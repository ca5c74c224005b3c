"""A chat that another model answered: the question which model continues it, and what waits for it."""

from __future__ import annotations

import re

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtTest import QTest

from app.controllers import prompt_size, read_ahead
from app.conversation.tree import shown_path
from app.settings import Settings
from app.widgets.button import Button
from app.widgets.commands import CommandId
from app.words import computer, promise
from engine.errors import ModelFolderError
from engine.events import LoadModel
from engine.types import ConversationId
from tests.app.conftest import MakeStage
from tests.fakes.rig import FakeCatalog, card
from tests.fakes.stage import Stage

TINY, OTHER = card(), card("Other-4B", num_parameters=4_000_000_000)
REPLY = "Hi. " * 100  # the fake engine counts 113 tokens with its question
COST = "Other 4B would first read about 110 tokens."


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_ahead, "STAY_MS", 0)
    monkeypatch.setattr(prompt_size, "COUNT_MS", 0)


@pytest.fixture
def stage(make_stage: MakeStage) -> Stage:
    """A window with a new chat on show, and another chat that the model in use did not answer."""
    stage = make_stage(catalog=FakeCatalog(cards=(TINY, OTHER)))
    stage.chat("Hello there, model", REPLY)
    stage.rig.library.new_chat()
    stage.rig.models.choose(OTHER.path)
    stage.settle()
    stage.engine.commands.clear()
    return stage


def open_chat(stage: Stage) -> ConversationId:
    """Open the chat of the other model, and wait until its size is counted."""
    stage.click_row("Hello there, model")
    stage.wait_until(lambda: bool(stage.engine.counts))
    stage.settle()
    return stage.current


def click(button: Button) -> None:
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)


def loads(stage: Stage) -> list[str]:
    return [command.path for command in stage.engine.commands if isinstance(command, LoadModel)]


def test_chat_of_another_model_is_not_read_ahead_before_the_choice(stage: Stage) -> None:
    open_chat(stage)
    line = stage.pane.model_question
    assert line.isVisible()
    assert line.sentence.text() == f"This chat used Tiny 9B 4-bit. {COST}"
    assert line.first.text() == "Use Tiny 9B 4-bit"
    assert line.second.text() == "Stay with Other 4B"
    assert "will read" not in stage.composer.caption, "the line has the tokens"
    assert stage.engine.read_aheads == []
    stage.type("words " * 100)
    stage.pane.draft.flush()
    stage.settle()
    assert stage.engine.read_aheads == [], "a long draft waits for the choice, too"


def test_staying_reads_the_chat_ahead_and_is_remembered(stage: Stage) -> None:
    chat = open_chat(stage)
    click(stage.pane.model_question.second)
    assert not stage.pane.model_question.isVisible()
    stage.wait_until(lambda: len(stage.engine.read_aheads) == 1)
    assert stage.engine.read_aheads[0].conversation_id == chat
    assert loads(stage) == []
    stage.rig.library.new_chat()
    stage.rig.library.select(chat)
    assert not stage.pane.model_question.isVisible()


def test_staying_is_remembered_after_a_restart(stage: Stage, make_stage: MakeStage) -> None:
    chat = open_chat(stage)
    click(stage.pane.model_question.second)
    stage.close()
    settings = Settings(model_path=str(OTHER.path))
    again = make_stage(settings=settings, catalog=FakeCatalog(cards=(TINY, OTHER)))
    again.rig.library.select(chat)
    again.settle()
    assert again.current == chat
    assert not again.pane.model_question.isVisible()
    again.rig.models.choose(TINY.path)
    again.rig.library.new_chat()
    again.rig.models.choose(OTHER.path)
    again.rig.library.select(chat)
    again.settle()
    assert again.pane.model_question.isVisible(), "another model was chosen since"


def test_fork_and_duplicate_keep_the_choice_of_their_chat(stage: Stage) -> None:
    chat = open_chat(stage)
    click(stage.pane.model_question.second)
    asked: list[ConversationId] = []
    stage.rig.library.current_changed.connect(
        lambda: asked.extend([stage.current] if stage.pane.model_question.isVisible() else [])
    )
    stage.core.chat_copies.fork(chat, shown_path(stage.rig.desk.get(chat))[-1].node_id)
    stage.settle()
    fork = stage.current
    stage.core.chat_copies.duplicate([fork])
    stage.settle()
    assert len({chat, fork, stage.current}) == 3
    assert not stage.pane.model_question.isVisible()
    assert asked == []


def test_using_the_model_of_the_chat_loads_it(stage: Stage) -> None:
    open_chat(stage)
    click(stage.pane.model_question.first)
    assert loads(stage) == [str(TINY.path)]
    stage.wait_until(lambda: not stage.pane.model_question.isVisible())


def test_message_and_regenerating_wait_for_the_choice(stage: Stage) -> None:
    open_chat(stage)
    line = stage.pane.model_question
    stage.run(CommandId.REGENERATE)
    assert line.first.hasFocus()
    asked = f"This chat used Tiny 9B 4-bit. {COST} Choose the model that answers"
    assert line.sentence.text() == f"{asked}, then try again."
    stage.send("Again")
    assert stage.engine.submitted == []
    assert stage.edit.toPlainText() == "Again"
    assert line.first.hasFocus()
    assert line.sentence.text() == f"{asked}. Your message is sent after that."
    QTest.keyClick(line.first, Qt.Key.Key_Tab)
    assert line.second.hasFocus()
    QTest.keyClick(line.second, Qt.Key.Key_Return)
    stage.settle()
    assert stage.edit.hasFocus()
    assert stage.edit.toPlainText() == ""
    assert [message.content for message in stage.engine.submitted[0].messages][-1] == "Again"
    assert not stage.pane.model_question.isVisible()
    stage.answer("Yes")
    assert not stage.pane.model_question.isVisible()
    figures = [item.figures for item in stage.items if item.figures is not None]
    assert all(one.names_model for one in figures)


@pytest.mark.parametrize("by_picker", [True, False])
def test_message_is_sent_to_the_chosen_model_when_it_is_loaded(
    stage: Stage, by_picker: bool
) -> None:
    open_chat(stage)
    stage.send("Again")
    stage.engine.hold_load = True
    if by_picker:
        stage.rig.models.choose(TINY.path)
    else:
        click(stage.pane.model_question.first)
    stage.settle()
    assert stage.texts[-2:] == ["Again", ""], "the message is on show while the model is loaded"
    assert stage.engine.submitted == []
    stage.engine.finish_load()
    stage.settle()
    assert loads(stage) == [str(TINY.path)]
    assert len(stage.engine.submitted) == 1
    stage.answer("Yes")
    assert stage.texts[-2:] == ["Again", "Yes"]


def test_message_that_was_changed_before_the_choice_is_not_sent(stage: Stage) -> None:
    open_chat(stage)
    stage.send("Again")
    stage.type(" and")
    assert stage.pane.model_question.sentence.text().endswith("then try again.")
    click(stage.pane.model_question.second)
    stage.settle()
    assert stage.engine.submitted == []
    assert stage.edit.toPlainText() == "Again and"


def test_message_of_another_chat_is_not_sent_after_the_choice(stage: Stage) -> None:
    open_chat(stage)
    stage.send("Again")
    stage.rig.library.new_chat()
    stage.click_row("Hello there, model")
    click(stage.pane.model_question.second)
    stage.settle()
    assert stage.engine.submitted == []
    assert stage.edit.toPlainText() == "Again"


def test_model_chosen_while_the_chat_is_on_show_needs_no_question(make_stage: MakeStage) -> None:
    assert promise.OTHER_MODEL.endswith("Before you send, a note shows how much that is.")
    stage = make_stage(catalog=FakeCatalog(cards=(TINY, OTHER)))
    stage.chat("Hello there, model", REPLY)
    chat = stage.current
    stage.rig.models.choose(OTHER.path)
    stage.settle()
    assert not stage.pane.model_question.isVisible()
    note = "Other 4B will read this chat with your next message: about 110 tokens."
    stage.wait_until(lambda: stage.composer.caption.startswith(note[:-1]))
    stage.rig.library.new_chat()
    stage.rig.library.select(chat)
    assert not stage.pane.model_question.isVisible(), "the choice was for this chat"


def test_gone_model_of_a_chat_is_named_and_only_staying_is_offered(stage: Stage) -> None:
    stage.rig.catalog.gone.add(str(TINY.path))
    stage.rig.catalog.cards = (OTHER,)
    open_chat(stage)
    stage.rig.models.refresh()
    stage.wait_until(lambda: not stage.pane.model_question.first.isVisible())
    line = stage.pane.model_question
    assert line.sentence.text() == (
        f"This chat used Tiny 9B 4-bit, which is no longer on {computer.THIS_COMPUTER}. {COST}"
    )
    assert line.second.isVisible()


def test_model_of_a_chat_that_cannot_be_loaded_is_not_offered(stage: Stage) -> None:
    problem = ModelFolderError("model.safetensors can’t be read.").problem
    stage.rig.catalog.cards = (card(problem=problem), OTHER)
    stage.rig.models.refresh()
    open_chat(stage)
    line = stage.pane.model_question
    stage.wait_until(lambda: not line.first.isVisible())
    assert line.sentence.text() == f"This chat used Tiny 9B 4-bit, which can’t be loaded. {COST}"


def test_pointer_over_the_chat_of_another_model_reads_nothing_from_disk(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_ahead, "POINTED_MS", 0)
    chat = open_chat(stage)
    stage.rig.library.new_chat()
    stage.rig.desk.expect(chat)
    stage.settle()
    assert stage.engine.read_aheads == []


@pytest.mark.parametrize("size", [(1100, 760), (640, 480)])
def test_tokens_counted_later_move_no_button_of_the_question(
    stage: Stage, size: tuple[int, int]
) -> None:
    stage.window.resize(*size)
    stage.engine.hold_counts = True
    stage.click_row("Hello there, model")
    line = stage.pane.model_question
    stage.wait_until(lambda: bool(stage.engine.counts))
    stage.settle()
    places = [place(stage, button) for button in line.buttons]
    assert COST not in line.sentence.text()
    stage.engine.finish_counts()
    stage.wait_until(lambda: COST in line.sentence.text())
    stage.settle()
    assert [place(stage, button) for button in line.buttons] == places
    stage.type("more")
    stage.pane.draft.flush()
    assert COST in line.sentence.text(), "it stays while the tokens are counted again"


def place(stage: Stage, button: Button) -> QRect:
    return QRect(button.mapTo(stage.window, QPoint()), button.size())


def test_buttons_of_the_question_fit_a_narrow_window(make_stage: MakeStage) -> None:
    named = card("Some-Very-Long-Model-Name-30B-A3B-Instruct-2507-4bit-DWQ", path=OTHER.path)
    stage = make_stage(catalog=FakeCatalog(cards=(TINY, named)))
    stage.chat("Hello there, model", REPLY)
    chat = stage.current
    stage.rig.library.new_chat()
    stage.rig.models.choose(OTHER.path)
    stage.window.resize(640, 480)
    stage.rig.library.select(chat)
    stage.settle()
    line = stage.pane.model_question
    assert line.second.isVisible()
    stage.wait_until(lambda: line.second.y() > line.first.y())  # the buttons are stacked
    for button in (line.first, line.second):
        assert button.sizeHint().width() <= button.width()
        assert line.rect().contains(button.geometry())
    assert line.second.toolTip().startswith("Stay with Some Very Long Model Name 30B-A3B")
    assert re.fullmatch(r"Stay with Some.*….*DWQ", line.second.text())
