"""The question before another model takes the place of the one that writes answers."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from app.widgets.commands import CommandId
from app.widgets.message_sheet import MessageSheet
from engine.events import LoadModel
from tests.app.conftest import MakeStage
from tests.fakes.rig import FakeCatalog, card
from tests.fakes.sheets import find_sheet, press, sheet_in
from tests.fakes.stage import Key, Stage

# The offscreen platform logs these messages for every popup.
pytestmark = pytest.mark.qt_log_ignore("does not support (raise|grabbing)", extend=True)

TINY, OTHER = card(), card("Other-4B", num_parameters=4_000_000_000)


def loads(stage: Stage) -> list[str]:
    return [command.path for command in stage.engine.commands if isinstance(command, LoadModel)]


def answer(stage: Stage, name: str) -> None:
    press(sheet_in(stage.window), name)
    stage.settle()


def pick_other(stage: Stage) -> None:
    stage.run(CommandId.CHOOSE_MODEL)
    QTest.keyClick(stage.window.picker.list, Key.Key_Down)
    QTest.keyClick(stage.window.picker.list, Key.Key_Return)
    stage.settle()


def test_model_picked_while_another_chat_is_answered_is_loaded_after_the_question(
    make_stage: MakeStage,
) -> None:
    stage = make_stage(catalog=FakeCatalog(cards=(TINY, OTHER)))
    stage.send("Read the long file")
    answering = stage.current
    stage.engine.write("Half an ans")
    stage.run(CommandId.NEW_CHAT)
    before = loads(stage)
    pick_other(stage)
    sheet = sheet_in(stage.window)
    assert sheet.windowTitle() == "Use Other 4B now?"
    assert sheet.text == ("1 answer is not complete.\nIt stops. The text written so far is kept.")
    pick_other(stage)
    assert len(stage.window.findChildren(MessageSheet)) == 1, "one question at a time"
    answer(stage, "Cancel")
    assert loads(stage) == before
    assert stage.core.turns.live_in(answering) is not None
    assert stage.core.preferences.value.model_name != "Other 4B", "nothing was chosen"
    pick_other(stage)
    answer(stage, "Use Now")
    assert loads(stage) == [*before, str(OTHER.path)]
    assert stage.core.turns.live_in(answering) is None
    pick_other(stage)
    assert find_sheet(stage.window) is None, "nothing is cut off now"


def test_chats_own_model_and_unloading_are_asked_about_while_another_chat_is_answered(
    make_stage: MakeStage,
) -> None:
    stage = make_stage(catalog=FakeCatalog(cards=(TINY, OTHER)))
    stage.chat("Hello there, model", "Hi.")
    stage.rig.library.new_chat()
    stage.rig.models.choose(OTHER.path)
    stage.settle()
    stage.send("Write a long text")
    stage.click_row("Hello there, model")
    before = loads(stage)
    QTest.mouseClick(stage.pane.model_question.first, Qt.MouseButton.LeftButton)
    stage.settle()
    answer(stage, "Cancel")
    assert loads(stage) == before
    assert stage.pane.model_question.isVisible(), "the choice is still open"
    stage.core.models.unload()
    stage.settle()
    answer(stage, "Unload")
    assert stage.core.models.status.is_unloaded
