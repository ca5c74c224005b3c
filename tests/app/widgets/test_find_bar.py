"""Tests of the find bar with keys and buttons."""

from __future__ import annotations

from PySide6.QtTest import QTest

from app.widgets.commands import CommandId
from tests.fakes.stage import CTRL, SHIFT, Key, Stage


def test_find_bar_is_usable_with_keys_alone(stage: Stage) -> None:
    bar = stage.pane.find_bar
    stage.chat("A fox?", "No fox, no FOX.")
    QTest.keyClick(stage.edit, Key.Key_F, CTRL)
    assert bar.field.hasFocus()
    QTest.keyClicks(bar.field, "fox")
    assert bar.count.text() == "1 of 3"
    QTest.keyClick(bar.field, Key.Key_Return)
    assert bar.count.text() == "2 of 3"
    QTest.keyClick(bar.field, Key.Key_Return, SHIFT)
    assert bar.count.text() == "1 of 3"
    stage.run(CommandId.FIND_PREVIOUS)
    assert bar.count.text() == "3 of 3"
    assert not stage.pane.view.selection.is_empty
    QTest.keyClicks(bar.field, "y")
    assert bar.count.text() == "Not found"
    assert stage.pane.view.selection.is_empty
    QTest.keyClick(bar.field, Key.Key_Escape)
    assert not bar.isVisible()
    assert stage.edit.hasFocus()


def test_escape_closes_the_find_bar_before_it_stops_an_answer(stage: Stage) -> None:
    stage.send("Hello")
    stage.run(CommandId.FIND)
    stage.pane.view.setFocus()
    QTest.keyClick(stage.pane.view, Key.Key_Escape)
    assert not stage.pane.find_bar.isVisible()
    assert stage.engine.running is not None
    QTest.keyClick(stage.pane.view, Key.Key_Escape)
    stage.settle()
    assert stage.rig.turns.live_in(stage.current) is None


def test_find_next_reopens_the_bar_with_the_last_text(stage: Stage) -> None:
    bar = stage.pane.find_bar
    stage.chat("A fox?", "No.")
    stage.run(CommandId.FIND)
    QTest.keyClicks(bar.field, "fox")
    QTest.keyClick(bar.field, Key.Key_Escape)
    stage.run(CommandId.FIND_NEXT)

    assert bar.isVisible()
    assert bar.field.selectedText() == "fox"
    assert bar.count.text() == "1 of 1"


def test_new_chat_closes_the_find_bar(stage: Stage) -> None:
    stage.chat("A fox?", "No.")
    stage.run(CommandId.FIND)
    stage.run(CommandId.NEW_CHAT)

    assert not stage.pane.find_bar.isVisible()
    assert not stage.window.commands[CommandId.FIND].isEnabled()


def test_find_result_is_announced_once_for_several_keys(stage: Stage) -> None:
    bar = stage.pane.find_bar
    said: list[str] = []
    bar.announcer.said.connect(said.append)
    stage.chat("A fox?", "No fox, no FOX.")
    stage.run(CommandId.FIND)
    assert said == []
    QTest.keyClicks(bar.field, "fox")
    assert said == ["1 of 3"]  # a single announcement for three keystrokes
    QTest.keyClick(bar.field, Key.Key_Return)
    QTest.keyClicks(bar.field, "yz")
    assert said[1:] == ["2 of 3", "Not found"]
    QTest.keyClick(bar.field, Key.Key_Escape)
    stage.run(CommandId.FIND)
    assert said[3:] == ["Not found"]


def test_count_that_changes_while_streaming_is_not_announced(stage: Stage) -> None:
    bar = stage.pane.find_bar
    said: list[str] = []
    stage.send("A fox?")
    stage.run(CommandId.FIND)
    QTest.keyClicks(bar.field, "fox")
    bar.announcer.said.connect(said.append)
    stage.engine.write("No fox. ")
    stage.wait_until(lambda: bar.count.text() == "1 of 2")
    assert said == []
