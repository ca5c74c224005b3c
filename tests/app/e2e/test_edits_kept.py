"""The text of an open editor after a crash: it is stored a moment after the last key press."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from app.conversation.tree import DraftEdit
from app.widgets.commands import CommandId
from app.widgets.message_edit import MessageEdit
from app.widgets.message_sheet import MessageSheet
from app.widgets.transcript.rows.row import RowAction
from tests.app.conftest import MakeStage
from tests.fakes.stage import Key, Stage

LEFT = Qt.MouseButton.LeftButton
BRANCH = ["One", "1", "Two", "2"]


def field(stage: Stage) -> MessageEdit:
    """Return the text field of the open editor. A closed editor stays hidden until Qt deletes it."""
    fields = stage.pane.view.findChildren(MessageEdit)
    return next(one for one in fields if one.isVisible())


def edits(stage: Stage) -> list[str]:
    """Return the stored texts of editors in the chat on show."""
    chat = stage.current
    return [edit.text for edit in stage.stored(lambda store: store.load(chat)).draft_edits]


def begin_edit(stage: Stage, more: str) -> None:
    """Make a chat, and add to the text of its first question without sending it."""
    stage.chat("One", "1")
    stage.chat("Two", "2")
    stage.click(RowAction.EDIT)
    QTest.keyClicks(field(stage), more)
    stage.wait_until(lambda: edits(stage) == [f"One{more}"])


def relaunched_after_a_kill(stage: Stage, tmp_path: Path) -> Stage:
    """Return a window on a copy of the database as it is now."""
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in tmp_path.glob("conversations.db*"):
        shutil.copy(file, copy)
    settings = stage.rig.core.preferences.value
    return Stage(copy, settings=settings)


def test_text_of_an_open_editor_is_there_again_after_a_kill(stage: Stage, tmp_path: Path) -> None:
    begin_edit(stage, " more")
    again = relaunched_after_a_kill(stage, tmp_path)
    again.wait_until(lambda: again.pane.view.editor_host.edit is not None)
    assert field(again).toPlainText() == "One more"
    assert again.texts == BRANCH
    again.run(CommandId.QUIT)
    (sheet,) = again.window.findChildren(MessageSheet)
    assert "The changes will be lost." in sheet.text
    sheet.reject()
    again.close()


def test_restored_text_can_be_sent_and_is_stored_no_more(stage: Stage, tmp_path: Path) -> None:
    begin_edit(stage, " more")
    again = relaunched_after_a_kill(stage, tmp_path)
    again.wait_until(lambda: again.pane.view.editor_host.edit is not None)
    QTest.keyClick(field(again), Key.Key_Return)
    again.answer("3")
    assert again.texts == ["One more", "3"]
    assert edits(again) == []
    again.close()


@pytest.mark.parametrize("end", ["cancel", "send"])
def test_text_that_was_cancelled_or_sent_is_not_stored(stage: Stage, end: str) -> None:
    begin_edit(stage, " more")
    QTest.keyClick(field(stage), Key.Key_Escape if end == "cancel" else Key.Key_Return)
    stage.settle()
    assert edits(stage) == []


def test_cancelled_text_is_stored_again_after_an_undo(stage: Stage) -> None:
    begin_edit(stage, " more")
    QTest.keyClick(field(stage), Key.Key_Escape)
    stage.settle()
    stage.run(CommandId.UNDO)
    stage.wait_until(lambda: edits(stage) == ["One more"])


def test_texts_of_two_editors_in_two_chats_are_stored(stage: Stage) -> None:
    begin_edit(stage, " more")
    first = stage.current
    QTest.keyClicks(field(stage), " and more")
    stage.run(CommandId.NEW_CHAT)  # at once: the pause in typing is not over
    stage.chat("Three", "3")
    stage.click(RowAction.EDIT)
    QTest.keyClicks(field(stage), "!")
    stage.wait_until(lambda: edits(stage) == ["Three!"])
    (edit,) = stage.stored(lambda store: store.load(first)).draft_edits
    assert edit.text == "One more and more"


def test_text_is_stored_no_more_after_a_quit_that_was_confirmed(make_stage: MakeStage) -> None:
    stage = make_stage()
    begin_edit(stage, " more")
    stage.run(CommandId.QUIT)
    (sheet,) = stage.window.findChildren(MessageSheet)
    sheet.accept()
    stage.settle()
    assert edits(stage) == []
    settings = stage.rig.core.preferences.value
    stage.close()
    again = make_stage(settings=settings)
    again.wait_until(lambda: again.texts == BRANCH)
    assert again.pane.view.editor_host.edit is None


def test_text_of_a_message_that_is_gone_opens_no_editor(make_stage: MakeStage) -> None:
    stage = make_stage()
    stage.chat("One", "1")
    settings, chat = stage.rig.core.preferences.value, stage.current
    (question, _) = stage.rig.desk.get(chat).nodes
    stage.rig.desk.save_edits(chat, (DraftEdit(question, "One more"),))
    stage.rig.core.chat.delete(chat, question)
    stage.settle()
    stage.close()
    again = make_stage(settings=settings)
    again.settle()
    assert again.pane.view.editor_host.texts == {}


def test_editor_of_a_found_chat_leaves_the_focus_in_the_search(stage: Stage) -> None:
    begin_edit(stage, " more")
    stage.run(CommandId.NEW_CHAT)
    search = stage.window.sidebar.search.edit
    stage.run(CommandId.SEARCH)
    QTest.keyClicks(search, "Two")
    stage.wait_until(lambda: stage.window.sidebar.results.count() > 0)
    QTest.keyClick(search, Key.Key_Return)
    stage.wait_until(lambda: stage.pane.view.editor_host.edit is not None)

    assert search.hasFocus()
    QTest.keyClick(search, Key.Key_Escape)
    assert stage.window.sidebar.list.isVisible()
