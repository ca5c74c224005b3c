"""Tests of the ways from one chat to another: keys, Back and Forward, and the Window menu."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QMenu

from app.settings import load_settings
from app.viewmodels.transcript import ScrollPosition
from app.widgets.commands import CommandId
from tests.app.conftest import MakeStage
from tests.fakes.stage import CTRL, Key, Stage


@pytest.fixture
def chats(stage: Stage) -> Stage:
    """Return a window with the chats Four, Three, Two & a half, One. Four is on show."""
    for number in ("One", "Two & a half", "Three", "Four"):
        stage.rig.origin.time_s += 1.0
        stage.run(CommandId.NEW_CHAT)
        stage.chat(number, "Yes.")
    return stage


def shown(stage: Stage) -> str:
    return stage.texts[0]


def test_next_chat_goes_down_the_list_and_wraps_around(chats: Stage) -> None:
    seen: list[str] = []
    for _ in range(4):
        chats.run(CommandId.NEXT_CHAT)
        seen.append(shown(chats))
    assert seen == ["Three", "Two & a half", "One", "Four"]
    chats.run(CommandId.PREVIOUS_CHAT)
    assert shown(chats) == "One"
    chats.run(CommandId.NEW_CHAT)
    chats.run(CommandId.NEXT_CHAT)
    assert shown(chats) == "Four", "a new chat is above the first one"


def test_number_keys_show_the_chat_at_that_place(chats: Stage) -> None:
    for key, title in ((Key.Key_3, "Two & a half"), (Key.Key_1, "Four"), (Key.Key_4, "One")):
        QTest.keyClick(chats.edit, key, CTRL)
        chats.settle()
        assert shown(chats) == title
        assert chats.list.selected == [chats.row(title).conversation_id], "only the chat on show"
    QTest.keyClick(chats.edit, Key.Key_9, CTRL)
    chats.settle()
    assert shown(chats) == "One", "there is no ninth chat"


def test_window_menu_lists_the_chats_and_marks_the_one_on_show(chats: Stage) -> None:
    menu = next(
        action.menu() for action in chats.window.menuBar().actions() if action.text() == "Window"
    )
    assert isinstance(menu, QMenu)
    entries = [one for one in menu.actions() if one.isVisible() and not one.objectName()]
    entries = [one for one in entries if not one.isSeparator()]
    assert [one.text() for one in entries] == ["Four", "Three", "Two && a half", "One"]
    assert [one.isChecked() for one in entries] == [True, False, False, False]
    assert entries[1].shortcut() == QKeySequence("Ctrl+2")
    entries[1].trigger()
    chats.settle()
    assert shown(chats) == "Three"
    assert [one.isChecked() for one in entries] == [False, True, False, False]
    entries[1].trigger()
    assert entries[1].isChecked(), "the tick stays"


def test_back_and_forward_follow_the_visits_and_skip_deleted_chats(chats: Stage) -> None:
    commands = chats.window.commands
    assert not commands[CommandId.FORWARD].isEnabled()
    chats.click_row("One")
    chats.click_row("Three")
    chats.run(CommandId.BACK)
    assert shown(chats) == "One"
    chats.run(CommandId.DELETE)
    assert shown(chats) == "Two & a half"
    chats.run(CommandId.BACK)
    assert shown(chats) == "Four"
    chats.run(CommandId.FORWARD)
    chats.run(CommandId.FORWARD)
    assert shown(chats) == "Three", "the deleted chat must stay deleted"
    assert "One" not in chats.rows
    assert not commands[CommandId.FORWARD].isEnabled()
    chats.run(CommandId.BACK)
    chats.click_row("Four")
    assert not commands[CommandId.FORWARD].isEnabled(), "a new visit ends the way forward"
    chats.run(CommandId.BACK)
    assert shown(chats) == "Two & a half"


def test_chat_that_was_answered_out_of_sight_opens_at_the_new_answer(stage: Stage) -> None:
    stage.chat("One", "Yes.\n\n" * 60)
    stage.send("And then?")
    away, there = stage.current, stage.items[-1].key
    stage.pane.view.verticalScrollBar().setValue(0)
    stage.run(CommandId.NEW_CHAT)
    stage.answer("No.\n\n" * 60)
    stage.rig.library.select(away)
    stage.settle()
    assert stage.pane.transcript.position == ScrollPosition(there, 0)
    stage.pane.view.verticalScrollBar().setValue(0)
    stage.run(CommandId.NEW_CHAT)
    stage.rig.library.select(away)
    stage.settle()
    assert stage.pane.view.verticalScrollBar().value() == 0, "nothing was answered since"


def test_answer_that_ended_out_of_sight_in_an_earlier_run_opens_at_its_start(
    make_stage: MakeStage,
) -> None:
    stage = make_stage()
    stage.send("One")
    away, there = stage.current, stage.items[-1].key
    stage.run(CommandId.NEW_CHAT)
    stage.answer("No.\n\n" * 60)
    stage.close()
    again = make_stage()
    again.wait_until(lambda: away in again.rig.library.unseen.ids)
    again.rig.library.select(away)
    again.settle()
    assert again.pane.transcript.position == ScrollPosition(there, 0)


def test_chat_opens_at_its_end_after_a_crash_of_a_run_that_began_at_an_earlier_place(
    make_stage: MakeStage,
) -> None:
    stage = make_stage()
    stage.chat("One", "Yes.\n\n" * 60)
    stage.pane.view.verticalScrollBar().setValue(0)
    stage.close()
    ended = load_settings(stage.rig.settings_path).settings
    again = make_stage(settings=ended)
    again.wait_until(lambda: again.pane.view.verticalScrollBar().maximum() > 0)
    assert again.pane.view.verticalScrollBar().value() == 0
    at_crash = again.core.preferences.value
    again.close()
    last = make_stage(settings=at_crash)
    bar = last.pane.view.verticalScrollBar()
    last.wait_until(lambda: bar.maximum() > 0)
    assert bar.value() == bar.maximum()


def test_zoom_enlarges_the_window_and_brings_it_back(stage: Stage) -> None:
    stage.run(CommandId.ZOOM)
    assert stage.window.isMaximized()
    stage.run(CommandId.ZOOM)
    assert not stage.window.isMaximized()


def test_chats_with_only_a_draft_are_named_by_its_first_words(stage: Stage) -> None:
    for text in ("Ask about the **lease**", "Rope"):
        stage.rig.origin.time_s += 1.0
        stage.type(text)
        stage.pane.draft.flush()
        stage.run(CommandId.NEW_CHAT)
    assert stage.rows == ["TODAY", "Rope", "Ask about the lease"]
    stage.click_row("Rope")
    stage.edit.clear()
    stage.pane.draft.flush()
    assert stage.rows == ["TODAY", "Ask about the lease"]


def test_window_has_the_title_of_the_chat_on_show(chats: Stage) -> None:
    assert chats.window.windowTitle() == "Four"
    chats.click_row("One")
    assert chats.window.windowTitle() == "One"


def test_open_edit_is_on_show_again_with_its_text_and_cursor(chats: Stage) -> None:
    chats.run(CommandId.EDIT_LAST)
    keys = chats.pane.view.focusWidget()
    QTest.keyClicks(keys, " and more")
    for _ in range(4):
        QTest.keyClick(keys, Key.Key_Left)
    chats.run(CommandId.NEXT_CHAT)
    assert chats.pane.view.editor_host.edit is None
    assert chats.edit.hasFocus()
    chats.run(CommandId.PREVIOUS_CHAT)
    chats.settle()
    assert shown(chats) == "Four"
    keys = chats.pane.view.focusWidget()
    assert keys is not None
    assert keys.isVisible()
    QTest.keyClicks(keys, "not ")
    edit = chats.pane.view.editor_host.edit
    assert edit is not None
    assert edit[1] == "Four and not more"
    chats.click_row("One")
    chats.click_row("Four")
    assert chats.pane.view.editor_host.edit is not None
    assert chats.list.hasFocus(), "the arrow keys go on in the list"
    chats.run(CommandId.NEW_CHAT)
    chats.click_row("Four")
    chats.pane.escape()
    chats.click_row("One")
    chats.click_row("Four")
    assert chats.pane.view.editor_host.edit is None, "it was cancelled"
