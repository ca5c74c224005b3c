"""The command Undo: its name, and the order in which it undoes the user's actions."""

from __future__ import annotations

import pytest
from PySide6.QtTest import QTest

from app.conversation.tree import NodeId
from app.widgets.commands import CommandId
from app.widgets.menu import Menu
from engine.errors import OutOfMemoryError
from tests.fakes.stage import Stage


def name(stage: Stage) -> str:
    return stage.window.commands[CommandId.UNDO].text()


def undo(stage: Stage) -> str:
    """Undo one action. Return what the toast says about it."""
    stage.run(CommandId.UNDO)
    return stage.window.toast.text


def rename(stage: Stage, title: str) -> None:
    stage.rig.library.rename(stage.current, title)
    stage.settle()


def edit_answer(stage: Stage, text: str) -> None:
    assert stage.rig.chat.rewrite(stage.current, NodeId(stage.items[-1].key), text)
    stage.settle()


def title(stage: Stage) -> str:
    return stage.rig.library.summary(stage.current).title


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
    assert name(stage) == "Undo"


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
    assert name(stage) == "Undo"


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
    undo(stage)
    assert stage.current == one
    assert title(stage) == "One"


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
