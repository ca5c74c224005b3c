"""Tests of the quick switcher: chats, commands and models by a few letters, with keys only."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from app.widgets.commands import CommandId
from app.widgets.switcher import QuickSwitcher
from tests.fakes.rig import card
from tests.fakes.stage import Key, Stage

# The offscreen platform logs these messages for every popup.
pytestmark = pytest.mark.qt_log_ignore("does not support (raise|grabbing)", extend=True)


def make_chats(stage: Stage, *titles: str) -> None:
    for title in titles:
        stage.rig.origin.time_s += 1.0
        stage.run(CommandId.NEW_CHAT)
        stage.chat(title, "Yes.")


def opened(stage: Stage, typed: str = "") -> QuickSwitcher:
    stage.run(CommandId.SWITCHER)
    popup = stage.window.switching.popup
    assert popup.isVisible()
    QTest.keyClicks(popup.field, typed)
    return popup


def names(popup: QuickSwitcher) -> list[str]:
    spoken = Qt.ItemDataRole.AccessibleTextRole
    return [str(popup.list.item(at).data(spoken)) for at in range(popup.list.count())]


def test_empty_switcher_lists_the_newest_chats(stage: Stage) -> None:
    make_chats(stage, "One", "Two", "Three")
    popup = opened(stage)
    assert names(popup) == ["Three, chat", "Two, chat", "One, chat"]
    QTest.keyClick(popup.field, Key.Key_Down)
    QTest.keyClick(popup.field, Key.Key_Return)
    stage.settle()
    assert not popup.isVisible()
    assert stage.texts[0] == "Two"


def test_letters_find_a_chat_and_return_opens_it(stage: Stage) -> None:
    make_chats(stage, "Trip to Lisbon", "Bread", "Sorting")
    popup = opened(stage, "ttl")
    assert names(popup)[0] == "Trip to Lisbon, chat"
    QTest.keyClick(popup.field, Key.Key_Return)
    stage.settle()
    assert stage.texts[0] == "Trip to Lisbon"


def test_command_runs_and_a_disabled_one_is_not_listed(stage: Stage) -> None:
    popup = opened(stage, "show insp")
    assert names(popup)[0].startswith("Show Inspector, command")
    QTest.keyClick(popup.field, Key.Key_Return)
    stage.settle()
    assert stage.window.inspector.isVisible()
    popup = opened(stage, "regenerate")
    assert not any(name.startswith("Regenerate") for name in names(popup))
    assert popup.nothing.isVisible() is (popup.list.count() == 0)


def test_command_with_an_ampersand_is_listed_as_it_is_read(stage: Stage) -> None:
    popup = opened(stage, "memory &")
    assert names(popup)[0].startswith("Memory & Storage, command")


def test_command_that_is_switched_on_says_so(stage: Stage) -> None:
    popup = opened(stage, "show sidebar")
    assert names(popup)[0].startswith("Show Sidebar, command, On · ")
    QTest.keyClick(popup.field, Key.Key_Return)
    stage.settle()
    assert ", On" not in names(opened(stage, "show sidebar"))[0]


@pytest.mark.parametrize("step", [Key.Key_Up, Key.Key_PageDown])
def test_up_from_the_first_entry_and_page_down_reach_the_last(stage: Stage, step: Qt.Key) -> None:
    make_chats(stage, "One", "Two", "Three")
    popup = opened(stage)
    QTest.keyClick(popup.field, step)
    assert popup.list.currentRow() == 2


def test_escape_closes_the_switcher_and_changes_nothing(stage: Stage) -> None:
    make_chats(stage, "One", "Two")
    popup = opened(stage, "One")
    QTest.keyClick(popup.field, Key.Key_Escape)
    assert not popup.isVisible()
    assert stage.texts[0] == "Two"


def test_archived_chat_is_found_and_says_so(stage: Stage) -> None:
    make_chats(stage, "One", "Two")
    stage.run(CommandId.ARCHIVE)
    popup = opened(stage, "Two")
    assert names(popup)[0] == "Two, chat, Archived"
    popup.hide()


def test_words_without_a_match_show_a_sentence(stage: Stage) -> None:
    popup = opened(stage, "zzzz")
    assert popup.nothing.isVisible()
    QTest.keyClick(popup.field, Key.Key_Return)
    assert popup.isVisible()
    popup.hide()


def test_model_is_chosen(stage: Stage) -> None:
    stage.rig.catalog.cards = (card(), card("Other-4B-8bit", num_parameters=4))
    stage.rig.models.refresh()
    stage.wait_until(lambda: len(stage.rig.models.cards) == 2)
    popup = opened(stage, "oth4")
    assert names(popup)[0] == "Other 4B 8-bit, model, Model"
    QTest.keyClick(popup.field, Key.Key_Return)
    stage.wait_until(lambda: stage.rig.models.status.name == "Other 4B 8-bit")


def test_text_typed_after_go_to_is_written_into_the_chat_during_a_search(stage: Stage) -> None:
    make_chats(stage, "A boat", "Rome")
    stage.run(CommandId.SEARCH)
    field = stage.window.sidebar.search.edit
    QTest.keyClicks(field, "boat")
    stage.wait_until(stage.window.sidebar.results.isVisible)
    stage.settle()
    QTest.keyClick(field, Key.Key_Down)
    QTest.keyClick(stage.window.sidebar.results, Key.Key_Return)
    stage.settle()
    QTest.keyClick(opened(stage, "rome").field, Key.Key_Return)
    stage.settle()
    focused = stage.window.focusWidget()
    assert focused is not None
    QTest.keyClicks(focused, "hello")
    assert (field.text(), stage.edit.toPlainText()) == ("boat", "hello")
    assert stage.texts[0] == "Rome"
