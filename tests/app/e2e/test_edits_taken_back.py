"""An edited message whose turn ends before the engine has started it: its editor opens again."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from app.viewmodels.transcript import Version
from app.widgets.commands import CommandId
from app.widgets.message_edit import MessageEdit
from app.widgets.message_sheet import MessageSheet
from app.widgets.transcript.rows.row import RowAction
from app.widgets.unsent_note import UnsentNote
from engine.errors import ContextFullError, ModelFolderError, OutOfMemoryError
from tests.app.conftest import MakeStage
from tests.fakes.rig import card
from tests.fakes.stage import Key, Stage

LEFT = Qt.MouseButton.LeftButton
BRANCH = ["One", "1", "Two", "2"]
FULL = ContextFullError("Too many tokens.", 40_000).problem


def start(stage: Stage) -> None:
    """Make a chat of two questions and two answers. Later requests wait in the engine's queue."""
    stage.chat("One", "1")
    stage.chat("Two", "2")
    stage.engine.hold_start = True


def field(stage: Stage) -> MessageEdit:
    """Return the text field of the open editor. A closed editor stays hidden until Qt deletes it."""
    fields = stage.pane.view.findChildren(MessageEdit)
    return next(one for one in fields if one.isVisible())


def edit_first(stage: Stage, more: str) -> None:
    """Add to the text of the first question, and press Return."""
    stage.click(RowAction.EDIT)
    QTest.keyClicks(field(stage), more)
    QTest.keyClick(field(stage), Key.Key_Return)
    stage.settle()
    assert stage.pane.view.editor_host.edit is None
    assert stage.texts[0] == f"One{more}"
    assert len(stage.texts) == 2


def press_escape(stage: Stage) -> None:
    QTest.keyClick(stage.window.focusWidget(), Key.Key_Escape)
    stage.settle()


def click_stop(stage: Stage) -> None:
    QTest.mouseClick(stage.composer.button, LEFT)
    stage.settle()


def assert_edited_again(stage: Stage, text: str) -> None:
    assert field(stage).toPlainText() == text
    assert stage.texts == BRANCH, "the branch before the edit is on show"
    stage.pane.draft.flush()
    conversation = stage.rig.desk.get(stage.current)
    assert text not in [node.content for node in conversation.nodes.values()]
    assert conversation.draft == stage.edit.toPlainText()


@pytest.mark.parametrize("stop", [press_escape, click_stop])
def test_stopped_edit_is_in_its_editor_again_and_keeps_its_place(
    stage: Stage, stop: Callable[[Stage], None]
) -> None:
    start(stage)
    edit_first(stage, " more")
    stop(stage)
    assert_edited_again(stage, "One more")
    assert stage.edit.toPlainText() == ""
    assert field(stage).hasFocus()
    QTest.keyClicks(field(stage), "!")
    QTest.keyClick(field(stage), Key.Key_Return)
    stage.settle()
    stage.engine.begin()
    stage.answer("1!")
    assert stage.texts == ["One more!", "1!"]
    assert stage.items[0].version == Version(2, 2)
    assert stage.pane.view.editor_host.edit is None


def test_edit_that_waits_for_another_answer_is_in_its_editor_again(stage: Stage) -> None:
    start(stage)
    stage.engine.hold_start = False
    stage.run(CommandId.NEW_CHAT)
    stage.send("Busy")
    stage.click_row("One")
    edit_first(stage, " more")
    press_escape(stage)
    assert_edited_again(stage, "One more")
    stage.answer("Done")
    assert_edited_again(stage, "One more")


def test_edit_that_waits_for_a_model_is_in_its_editor_again(stage: Stage) -> None:
    start(stage)
    stage.engine.hold_load = True
    stage.rig.models.choose(card("Other-4B").path)
    stage.settle()
    edit_first(stage, " more")
    press_escape(stage)
    assert_edited_again(stage, "One more")
    QTest.keyClick(field(stage), Key.Key_Return)
    stage.settle()
    stage.engine.fail_load(ModelFolderError("A file is missing.").problem)
    stage.settle()
    assert_edited_again(stage, "One more")


def test_edit_that_is_too_long_is_in_its_editor_again_below_the_problem(stage: Stage) -> None:
    start(stage)
    edit_first(stage, " more")
    stage.engine.fail(FULL)
    stage.settle()
    assert_edited_again(stage, "One more")
    assert stage.pane.notice.problem == FULL
    assert not stage.pane.notice.button.isVisible(), "the message field has nothing to move"


def test_draft_and_queued_message_stay_in_the_composer_of_a_stopped_edit(stage: Stage) -> None:
    start(stage)
    edit_first(stage, " more")
    stage.send("Three")
    stage.type("Four")
    press_escape(stage)
    assert_edited_again(stage, "One more")
    assert stage.edit.toPlainText() == "Three\n\nFour"
    assert stage.edit.hasFocus(), "the keys that follow belong to the text that is being typed"


def test_cursor_is_behind_the_last_character_of_a_stopped_edit(stage: Stage) -> None:
    start(stage)
    stage.click(RowAction.EDIT)
    field(stage).insertPlainText(" 🙂🙂")
    QTest.keyClick(field(stage), Key.Key_Return)
    stage.settle()
    press_escape(stage)
    QTest.keyClicks(field(stage), "x")
    assert_edited_again(stage, "One 🙂🙂x")


def test_edit_refused_out_of_sight_is_in_its_editor_when_its_chat_is_shown(stage: Stage) -> None:
    start(stage)
    chat = stage.current
    edit_first(stage, " more")
    stage.run(CommandId.NEW_CHAT)
    stage.type("Elsewhere")
    stage.engine.fail(OutOfMemoryError("None was left.").problem)
    stage.settle()
    assert stage.pane.view.editor_host.edit is None
    assert stage.edit.toPlainText() == "Elsewhere"
    assert "“One” was not sent." in stage.window.toast.text
    stage.window.close()
    (sheet,) = [one for one in stage.window.findChildren(MessageSheet) if one.isVisible()]
    assert sheet.text.splitlines()[0] == "An edited message in “One” is not saved."
    sheet.reject()
    stage.rig.library.select(chat)
    stage.settle()
    assert_edited_again(stage, "One more")
    assert stage.edit.toPlainText() == ""


def test_text_that_was_not_changed_asks_for_no_confirmation_after_it_was_stopped(
    stage: Stage,
) -> None:
    start(stage)
    edit_first(stage, "")
    press_escape(stage)
    assert field(stage).hasFocus()
    stage.window.close()
    assert not stage.window.isVisible()


def test_undo_names_no_edit_that_was_stopped(stage: Stage) -> None:
    undo, redo = (stage.window.commands[one] for one in (CommandId.UNDO, CommandId.REDO))
    start(stage)
    edit_first(stage, " more")
    assert undo.text() == "Undo Edit Message"
    press_escape(stage)
    assert undo.text() == "Undo Typing", "the editor has the focus"
    press_escape(stage)
    assert stage.pane.view.editor_host.edit is None
    assert undo.text() == "Undo Cancel Editing"
    stage.run(CommandId.UNDO)
    assert_edited_again(stage, "One more")
    press_escape(stage)
    stage.run(CommandId.UNDO)
    stage.edit.setFocus()
    assert undo.text() == "Undo Send"
    assert redo.text() == "Redo"


def test_redo_names_no_edit_that_was_undone_and_then_stopped(stage: Stage) -> None:
    redo = stage.window.commands[CommandId.REDO]
    start(stage)
    edit_first(stage, " more")
    stage.run(CommandId.UNDO)
    assert stage.texts == BRANCH
    assert redo.text() == "Redo Edit Message"
    press_escape(stage)
    assert_edited_again(stage, "One more")
    stage.edit.setFocus()
    assert redo.text() == "Redo"


def test_edit_of_a_message_that_is_undone_is_in_its_editor_after_the_redo(stage: Stage) -> None:
    start(stage)
    stage.run(CommandId.EDIT_LAST)
    QTest.keyClicks(field(stage), " more")
    QTest.keyClick(field(stage), Key.Key_Return)
    stage.settle()
    stage.run(CommandId.UNDO)
    assert stage.texts == BRANCH
    stage.run(CommandId.UNDO)
    assert stage.texts == ["One", "1"]
    assert stage.pane.view.editor_host.edit is None
    assert stage.edit.toPlainText() == "Two"
    stage.window.sidebar.list.setFocus()
    stage.run(CommandId.REDO)
    stage.run(CommandId.EDIT_LAST)
    assert_edited_again(stage, "Two more")


def test_regenerated_answer_that_is_stopped_opens_no_editor(stage: Stage) -> None:
    start(stage)
    stage.run(CommandId.REGENERATE)
    press_escape(stage)
    assert stage.texts == BRANCH
    assert stage.pane.view.editor_host.edit is None
    assert stage.edit.toPlainText() == ""


def test_new_message_that_is_stopped_is_in_the_composer_again(stage: Stage) -> None:
    start(stage)
    stage.send("Three")
    press_escape(stage)
    assert stage.texts == BRANCH
    assert stage.pane.view.editor_host.edit is None
    assert stage.edit.toPlainText() == "Three"


def test_edit_that_waits_at_a_quit_is_in_the_composer_of_the_next_start(
    make_stage: MakeStage,
) -> None:
    stage = make_stage()
    start(stage)
    edit_first(stage, " more")
    settings = stage.rig.core.preferences
    stage.close()
    again = make_stage(settings=settings.value)
    again.wait_until(lambda: again.edit.toPlainText() == "One more")
    assert again.texts == BRANCH
    (note,) = again.pane.findChildren(UnsentNote)
    assert "It is in the message field" in note.sentence.text()
