"""The commands Undo and Redo: their names, and the order of the user's actions."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from app.controllers.desk import KEPT
from app.controllers.undo import MAX_ENTRIES, UndoList
from app.conversation.tree import NodeId
from app.widgets.commands import CommandId
from app.widgets.menu import Menu
from app.widgets.send_button import SendState
from engine.errors import OutOfMemoryError
from tests.fakes.stage import CTRL, Stage


def name(stage: Stage) -> str:
    return stage.window.commands[CommandId.UNDO].text()


def undo(stage: Stage) -> str:
    """Undo one action. Return what the toast says about it."""
    stage.run(CommandId.UNDO)
    return stage.window.toast.text


def redo_name(stage: Stage) -> str:
    return stage.window.commands[CommandId.REDO].text()


def redo(stage: Stage) -> str:
    """Redo one action. Return what the toast says about it."""
    stage.run(CommandId.REDO)
    return stage.window.toast.text


def rename(stage: Stage, title: str) -> None:
    stage.rig.core.organiser.rename(stage.current, title)
    stage.settle()


def edit_answer(stage: Stage, text: str) -> None:
    assert stage.rig.chat.rewrite(stage.current, NodeId(stage.items[-1].key), text)
    stage.settle()


def title(stage: Stage) -> str:
    return stage.rig.library.listed.summary(stage.current).title


def test_undo_names_the_action_and_goes_back_one_step_at_a_time(stage: Stage) -> None:
    assert name(stage) == "Undo"
    stage.chat("One", "1")
    rename(stage, "Renamed")
    assert name(stage) == "Undo Rename Chat"
    edit_answer(stage, "2")
    assert name(stage) == "Undo Edit Answer"
    assert undo(stage) == "Undone: Edit Answer"
    assert stage.texts == ["One", "1"]
    assert title(stage) == "Renamed"
    assert undo(stage) == "Undone: Rename Chat"
    assert title(stage) == "One"
    assert name(stage) == "Undo Send"
    assert redo(stage) == "Redone: Rename Chat"
    assert redo(stage) == "Redone: Edit Answer"
    assert stage.texts == ["One", "2"]
    assert title(stage) == "Renamed"
    assert redo_name(stage) == "Redo"


@pytest.mark.parametrize(
    ("command", "undone"),
    [(CommandId.REGENERATE, "Regenerate"), (CommandId.EDIT_LAST, "Edit Message")],
)
def test_new_version_with_its_own_answer_is_undone(
    stage: Stage, command: CommandId, undone: str
) -> None:
    stage.chat("One", "1")
    if command is CommandId.REGENERATE:
        stage.run(command)
    else:
        assert stage.rig.chat.edit(stage.current, NodeId(stage.items[0].key), "Uno")
    stage.answer("2")
    assert undo(stage) == f"Undone: {undone}"
    assert stage.texts == ["One", "1"]
    assert [item.version.count for item in stage.items].count(2) == 1, "the new version is kept"


def test_refused_edit_leaves_nothing_to_undo(stage: Stage) -> None:
    stage.chat("One", "1")
    stage.engine.hold_start = True
    assert stage.rig.chat.edit(stage.current, NodeId(stage.items[0].key), "Uno")
    stage.settle()
    assert name(stage) == "Undo Edit Message"
    stage.engine.fail(OutOfMemoryError("Too long.").problem)
    stage.settle()
    assert name(stage) == "Undo Typing", "its editor is open again"
    stage.edit.setFocus()
    assert name(stage) == "Undo Send"


def test_actions_in_the_chat_on_show_are_undone_first(stage: Stage) -> None:
    stage.chat("One", "1")
    one = stage.current
    stage.run(CommandId.NEW_CHAT)
    stage.chat("Two", "2")
    rename(stage, "Second")
    stage.click_row("One")
    rename(stage, "First")
    stage.click_row("Second")
    assert undo(stage) == "Undone: Rename Chat"
    assert title(stage) == "Two"
    assert undo(stage) == "Undone: Send"
    undo(stage)
    assert stage.current == one
    assert title(stage) == "One"


def test_message_is_not_taken_back_from_a_chat_out_of_sight(stage: Stage) -> None:
    stage.chat("One", "1")
    stage.run(CommandId.NEW_CHAT)

    assert name(stage) == "Undo"
    stage.click_row("One")
    assert name(stage) == "Undo Send"


def test_deletion_of_a_chat_is_undone_before_older_actions_in_the_next_one(stage: Stage) -> None:
    stage.chat("One", "1")
    rename(stage, "First")
    stage.run(CommandId.NEW_CHAT)
    stage.chat("Two", "2")
    stage.run(CommandId.DELETE)
    assert stage.texts == ["One", "1"]
    assert name(stage) == "Undo Delete Chat"
    assert undo(stage) == "Undone: Delete Chat"
    assert stage.texts == ["Two", "2"]


def test_oldest_actions_are_forgotten() -> None:
    undone: list[int] = []
    actions = UndoList()
    oldest, *_ = [
        actions.add("Rename Chat", partial(undone.append, number))
        for number in range(MAX_ENTRIES + 1)
    ]
    assert not oldest()
    while actions.entries:
        actions.entries[-1].undo()
    assert undone == list(range(MAX_ENTRIES, 0, -1))


def test_typing_is_named_in_the_menu(stage: Stage) -> None:
    stage.edit.setFocus()
    QTest.keyClicks(stage.edit, "words")
    menus = stage.window.menuBar().findChildren(Menu)
    menu = next(menu for menu in menus if menu.title() == "Edit")
    menu.aboutToShow.emit()
    assert name(stage) == "Undo Typing"
    stage.run(CommandId.UNDO)
    menu.aboutToShow.emit()
    assert name(stage) == "Undo"


def enabled(stage: Stage) -> list[bool]:
    commands = CommandId.UNDO, CommandId.REDO, CommandId.CUT, CommandId.COPY
    return [stage.window.commands[one].isEnabled() for one in commands]


def test_open_edit_menu_offers_only_what_has_an_effect(stage: Stage) -> None:
    menus = stage.window.menuBar().findChildren(Menu)
    menu = next(menu for menu in menus if menu.title() == "Edit")
    menu.aboutToShow.emit()
    assert enabled(stage) == [False, False, False, False]
    menu.aboutToHide.emit()
    assert all(enabled(stage)), "their keys work while the menu is closed"
    QTest.keyClicks(stage.edit, "words")
    menu.aboutToShow.emit()
    assert enabled(stage) == [True, False, False, False]
    menu.aboutToHide.emit()
    QTest.keyClick(stage.edit, Qt.Key.Key_A, CTRL)
    menu.aboutToShow.emit()
    assert enabled(stage) == [True, False, True, True]
    stage.run(CommandId.CUT)
    menu.aboutToHide.emit()
    stage.run(CommandId.UNDO)
    menu.aboutToShow.emit()
    assert enabled(stage)[1], "the cut can be redone"
    menu.aboutToHide.emit()
    stage.composer.set_text("")
    stage.chat("Hello", "Hi there.")
    stage.pane.view.setFocus()
    stage.run(CommandId.SELECT_ALL)
    menu.aboutToShow.emit()
    assert enabled(stage)[2:] == [False, True], "an answer can only be copied"
    menu.aboutToHide.emit()


def test_message_is_sent_undone_and_redone_with_its_answer(stage: Stage) -> None:
    stage.chat("One", "1")
    stage.send("Two")
    stage.engine.write("The an")
    stage.settle()
    QTest.keyClick(stage.edit, Qt.Key.Key_Z, CTRL)
    stage.settle()
    assert stage.texts == ["One", "1"]
    assert stage.edit.toPlainText() == "Two"
    assert stage.composer.button.state is SendState.SEND, "the answer was stopped"
    assert stage.rig.stored_path(stage.current)[-1].content == "1"
    assert redo_name(stage) == "Redo Send"
    stage.edit.insertPlainText(" thirds")
    stage.pane.draft.flush()
    assert redo(stage) == "Redone: Send"
    assert stage.texts == ["One", "1", "Two", "The an"]
    assert stage.edit.toPlainText() == "Two thirds", "the user has changed the text"
    assert undo(stage) == "Undone: Send"
    assert stage.edit.toPlainText() == "Two\n\nTwo thirds"
    assert redo(stage) == "Redone: Send"
    assert stage.edit.toPlainText() == "Two thirds"
    stage.composer.set_text("")
    stage.pane.draft.flush()
    stage.run(CommandId.CONTINUE)
    stage.answer("swer")
    assert stage.texts[-1] == "The answer"


def test_first_message_that_is_taken_back_leaves_an_empty_chat(stage: Stage) -> None:
    stage.chat("One", "1")
    undo(stage)
    assert stage.pane.empty.heading.isVisible()
    assert stage.edit.toPlainText() == "One"
    redo(stage)
    assert stage.texts == ["One", "1"]
    assert stage.edit.toPlainText() == ""


def test_undo_of_the_first_message_shows_no_version_that_was_undone_before(stage: Stage) -> None:
    stage.chat("One", "Yes.")
    stage.run(CommandId.EDIT_LAST)
    QTest.keyClicks(stage.pane.view.focusWidget(), " more")
    QTest.keyClick(stage.pane.view.focusWidget(), Qt.Key.Key_Return)
    stage.settle()
    stage.answer("More.")
    stage.chat("Two", "No.")
    shown = [["One more", "More."], ["One", "Yes."], []]
    for texts in shown:
        undo(stage)
        assert stage.texts == texts
    assert stage.edit.toPlainText().startswith("One")
    for texts in (*reversed(shown[:-1]), ["One more", "More.", "Two", "No."]):
        redo(stage)
        assert stage.texts == texts


def test_waiting_and_queued_messages_are_taken_back_and_sent_again(stage: Stage) -> None:
    stage.engine.hold_start = True
    stage.send("One")
    stage.send("Two")
    assert undo(stage) == "Undone: Send"
    assert stage.edit.toPlainText() == "Two"
    assert stage.texts[0] == "One"
    undo(stage)
    assert stage.pane.empty.heading.isVisible()
    assert stage.edit.toPlainText() == "One\n\nTwo"
    assert name(stage) == "Undo"
    redo(stage)
    assert stage.texts[0] == "One"
    assert stage.edit.toPlainText() == "Two"
    redo(stage)
    assert stage.rig.chat.queued(stage.current).text == "Two"
    assert stage.edit.toPlainText() == ""
    stage.engine.begin()
    stage.answer("1")
    stage.engine.begin()
    stage.answer("2")
    assert stage.texts == ["One", "1", "Two", "2"]
    assert undo(stage) == "Undone: Send"
    assert stage.texts == ["One", "1"]
    assert stage.edit.toPlainText() == "Two"


def test_new_action_ends_the_redo_of_a_message(stage: Stage) -> None:
    stage.chat("One", "1")
    undo(stage)
    stage.send("!")
    assert redo_name(stage) == "Redo"
    assert stage.texts[0] == "One!"
    undo(stage)
    assert stage.edit.toPlainText() == "One!"


def test_version_switch_is_undone_and_redone_by_its_number(stage: Stage) -> None:
    stage.chat("One", "1")
    stage.run(CommandId.REGENERATE)
    stage.answer("2")
    stage.run(CommandId.PREVIOUS_VERSION)
    assert stage.texts == ["One", "1"]
    assert name(stage) == "Undo Show Version 1"
    undo(stage)
    assert stage.texts == ["One", "2"]
    assert name(stage) == "Undo Regenerate"
    assert redo(stage) == "Redone: Show Version 1"
    assert stage.texts == ["One", "1"]


def test_attached_and_removed_files_are_undone_and_sent_files_return(
    stage: Stage, tmp_path: Path
) -> None:
    paths = [tmp_path / "a.txt", tmp_path / "b.txt"]
    for path in paths:
        path.write_text(f"This is {path.name}.")

    def files() -> list[str]:
        conversation = stage.rig.desk.get(stage.current)
        return [file.name for file in conversation.draft_attachments]

    stage.rig.core.attachments.attach(stage.current, paths)
    stage.wait_until(lambda: files() == ["a.txt", "b.txt"])
    assert name(stage) == "Undo Attach 2 Files"
    stage.rig.core.attachments.remove(stage.current, 0)
    undo(stage)
    assert files() == ["a.txt", "b.txt"]
    redo(stage)
    assert files() == ["b.txt"]
    stage.chat("Read", "Done")
    assert files() == []
    undo(stage)
    assert (files(), stage.edit.toPlainText()) == (["b.txt"], "Read")
    undo(stage)
    undo(stage)
    assert files() == []
    redo(stage)
    assert files() == ["a.txt", "b.txt"]


def test_deleted_and_moved_chats_are_redone(stage: Stage) -> None:
    stage.chat("One", "1")
    stage.run(CommandId.NEW_CHAT)
    stage.chat("Two", "2")
    stage.run(CommandId.ARCHIVE)
    undo(stage)
    redo(stage)
    assert stage.rows == ["TODAY", "One"]
    undo(stage)
    stage.run(CommandId.DELETE)
    undo(stage)
    assert redo(stage) == "Redone: Delete Chat"
    assert stage.window.sidebar.toast.isHidden(), "the redo has one note"
    assert stage.rows == ["TODAY", "One"]
    undo(stage)
    assert stage.texts == ["Two", "2"]
    (other,) = {one.conversation_id for one in stage.rig.library.listed.unarchived} - {
        stage.current
    }
    stage.core.organiser.delete((other, stage.current))
    undo(stage)
    assert stage.texts == ["Two", "2"]


def test_message_that_is_refused_after_its_chat_was_left_cannot_be_undone(stage: Stage) -> None:
    stage.engine.hold_start = True
    stage.send("One")
    first = stage.current
    for number in range(KEPT + 1):
        stage.run(CommandId.NEW_CHAT)
        stage.type(f"Draft {number}")
    stage.run(CommandId.NEW_CHAT)
    stage.engine.fail(OutOfMemoryError("Too long.").problem)
    stage.settle()
    stage.rig.library.select(first)
    stage.settle()
    assert name(stage) == "Undo"
    assert stage.edit.toPlainText() == "One"


def test_text_typed_while_a_message_is_taken_back_stays(stage: Stage) -> None:
    stage.engine.hold_start = True
    stage.send("One")
    stage.engine.begin()  # the window has not heard of it yet
    stage.window.commands[CommandId.UNDO].trigger()
    QTest.keyClicks(stage.edit, "Two")
    stage.settle()
    assert stage.texts == []
    assert stage.edit.toPlainText() == "One\n\nTwo"


def test_continue_ends_the_redo_of_a_message_below(stage: Stage) -> None:
    stage.send("One")
    stage.engine.write("1")
    stage.settle()
    stage.pane.stop()
    stage.settle()
    stage.chat("Two", "2")
    undo(stage)
    stage.run(CommandId.CONTINUE)
    assert redo_name(stage) == "Redo"
    stage.answer(" and more")
    assert stage.texts == ["One", "1 and more"]
    assert stage.composer.text == "Two"


def test_actions_of_a_chat_that_is_removed_for_good_are_forgotten(stage: Stage) -> None:
    stage.chat("One", "Two")
    chat = stage.current
    assert stage.core.undo.entries
    stage.core.deletions.delete_all((chat,))
    stage.core.library.deleted.remove_all([chat])
    stage.settle()

    assert not stage.core.undo.entries


def test_undo_takes_back_what_continue_has_added(stage: Stage) -> None:
    stage.send("One")
    stage.engine.write("Half")
    stage.run(CommandId.STOP)
    stage.run(CommandId.CONTINUE)
    assert name(stage) == "Undo Continue"
    stage.engine.write(" an answer")
    stage.settle()
    assert undo(stage) == "Undone: Continue"
    assert stage.texts == ["One", "Half"]
    assert stage.engine.running is None
    assert name(stage) == "Undo Send"
    assert redo(stage) == "Redone: Continue"
    assert stage.texts == ["One", "Half an answer"]
    undo(stage)
    stage.run(CommandId.CONTINUE)
    stage.answer(" answer")
    undo(stage)
    assert stage.texts == ["One", "Half"]
    assert stage.items[-1].can_continue


def test_refused_continue_leaves_nothing_to_undo(stage: Stage) -> None:
    stage.send("One")
    stage.engine.write("Half")
    stage.run(CommandId.STOP)
    stage.engine.hold_start = True
    stage.run(CommandId.CONTINUE)
    assert undo(stage) == "Undone: Continue"
    assert stage.texts == ["One", "Half"]
    redo(stage)
    assert name(stage) == "Undo Continue"
    stage.engine.fail(OutOfMemoryError("Too long.").problem)
    stage.settle()
    assert name(stage) == "Undo Send"


def test_draft_that_was_typed_before_a_switch_is_undone_before_older_steps(stage: Stage) -> None:
    stage.chat("One", "1")
    stage.type("A draft")
    stage.run(CommandId.NEW_CHAT)
    stage.click_row("One")
    stage.edit.setFocus()
    assert undo(stage) == "Undone: Typing"
    assert (stage.composer.text, stage.texts) == ("", ["One", "1"])
    assert redo(stage) == "Redone: Typing"
    assert stage.composer.text == "A draft"
    undo(stage)
    assert name(stage) == "Undo Send"
