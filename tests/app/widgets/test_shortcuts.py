"""Keyboard shortcuts that the user changes: what is refused, and what applies at once."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from app.settings import Settings, load_settings
from app.theme.icons import Icon
from app.widgets.commands import CommandId, tooltip
from app.widgets.key_choices import keys_of, refusal
from app.widgets.settings_shortcuts import ShortcutsPage
from app.widgets.settings_window import SettingsWindow
from app.widgets.shortcut_sheet import shortcuts
from tests.app.conftest import MakeStage
from tests.fakes.stage import CTRL, SHIFT, Key, Stage

pytestmark = [
    pytest.mark.qt_log_ignore("does not support raise", extend=True),
    pytest.mark.usefixtures("qapp"),
]
GO_TO = "Go To"


def opened(stage: Stage) -> ShortcutsPage:
    stage.run(CommandId.SETTINGS)
    window = stage.window.findChild(SettingsWindow)
    assert isinstance(window, SettingsWindow)
    window.tabs[Icon.KEYBOARD].click()
    return window.shortcuts


def choose(page: ShortcutsPage, title: str, key: Key, modifiers: Qt.KeyboardModifier) -> None:
    page.shown[title].click()
    QTest.keyClick(page.shown[title], key, modifiers)


@pytest.mark.parametrize("return_sends", [True, False])
def test_sheet_has_the_keys_of_nine_chats_and_of_an_edited_answer(*, return_sends: bool) -> None:
    rows = dict(shortcuts({}, return_sends=return_sends)["While Writing and Reading"])
    assert rows["First to Ninth Chat in the List"] == "Ctrl+1 to Ctrl+9"
    assert rows["Save Edited Answer"] == "Ctrl+Return"


def test_chosen_keys_run_their_command_and_are_shown_everywhere(stage: Stage) -> None:
    page = opened(stage)
    choose(page, GO_TO, Key.Key_J, CTRL | SHIFT)
    action = stage.window.commands[CommandId.SWITCHER]
    assert action.shortcuts() == [QKeySequence("Ctrl+Shift+J")]
    assert page.shown[GO_TO].text() == "Ctrl+Shift+J"
    assert "Ctrl+Shift+J" in tooltip(action)
    stage.core.preferences.flush()
    stage.core.preferences.flush()
    stage.wait_until(
        lambda: "switcher" in load_settings(stage.rig.settings_path).settings.shortcuts
    )


def test_chosen_keys_hold_after_a_restart(make_stage: MakeStage) -> None:
    stage = make_stage(settings=Settings(shortcuts={"new-chat": "Ctrl+Shift+J", "search": ""}))
    commands = stage.window.commands
    assert commands[CommandId.NEW_CHAT].shortcuts() == [QKeySequence("Ctrl+Shift+J")]
    assert commands[CommandId.SEARCH].shortcuts() == []
    stage.chat("Hello", "Hi")
    stage.window.activateWindow()
    stage.wait_until(lambda: QApplication.activeWindow() is stage.window)
    QTest.keyClick(stage.window, Key.Key_J, CTRL | SHIFT)
    assert stage.texts == []


def test_keys_of_another_command_are_refused_with_its_name(stage: Stage) -> None:
    page = opened(stage)
    page.shown["About Rejoinder"].setFocus(Qt.FocusReason.TabFocusReason)  # scrolls to the end
    choose(page, GO_TO, Key.Key_N, CTRL)
    assert "“New Chat”" in page.sentence.text()
    assert not page.sentence.visibleRegion().isEmpty()
    assert stage.core.preferences.value.shortcuts == {}
    QTest.keyClick(page.shown[GO_TO], Key.Key_J, CTRL)  # the button still takes keys
    assert page.shown[GO_TO].text() == "Ctrl+J"
    assert "“New Chat”" not in page.sentence.text(), "the refusal goes"


@pytest.mark.parametrize("keys", ["A", "Shift+A", "Space", "Left", "Ctrl+Left", "Ctrl+1", "Ctrl+C"])
def test_keys_that_write_or_edit_are_refused(keys: str) -> None:
    assert refusal(CommandId.SWITCHER, QKeySequence(keys), keys_of({}))


@pytest.mark.parametrize("keys", ["F6", "Ctrl+J", "Alt+J", "Ctrl+K"])
def test_free_keys_are_accepted(keys: str) -> None:
    assert refusal(CommandId.SWITCHER, QKeySequence(keys), keys_of({})) == ""


def test_delete_removes_a_shortcut_and_escape_keeps_it(stage: Stage) -> None:
    page = opened(stage)
    choose(page, GO_TO, Key.Key_Escape, Qt.KeyboardModifier.NoModifier)
    assert page.shown[GO_TO].text() == "Ctrl+K"
    choose(page, GO_TO, Key.Key_Delete, Qt.KeyboardModifier.NoModifier)
    assert page.shown[GO_TO].text() == "None"
    assert stage.window.commands[CommandId.SWITCHER].shortcuts() == []
    QTest.mouseClick(page.reset_button(GO_TO), Qt.MouseButton.LeftButton)
    assert page.shown[GO_TO].text() == "Ctrl+K"


def test_reset_is_refused_while_another_command_has_the_default_keys(stage: Stage) -> None:
    page = opened(stage)
    choose(page, GO_TO, Key.Key_J, CTRL)
    choose(page, "Rename", Key.Key_K, CTRL)
    QTest.mouseClick(page.reset_button(GO_TO), Qt.MouseButton.LeftButton)
    assert "“Rename”" in page.sentence.text()
    assert page.shown[GO_TO].text() == "Ctrl+J"
    page.reset_all.click()
    assert page.shown[GO_TO].text() == "Ctrl+K"
    assert stage.core.preferences.value.shortcuts == {}


def test_search_finds_commands_by_title_and_by_keys(stage: Stage) -> None:
    page = opened(stage)
    everything = len(page.shown)
    for text, title in (("go to", GO_TO), ("ctrl+k", GO_TO), ("theme dark", "")):
        page.field.setText(text)
        assert 0 <= len(page.shown) < everything
        assert not title or title in page.shown
    page.field.setText("no such command")
    assert page.sentence.text() == "No command or key matches."


def test_keys_of_text_fields_cannot_be_changed(stage: Stage) -> None:
    page = opened(stage)
    fixed = {title for title, keys in page.shown.items() if not keys.isEnabled()}
    assert fixed == {"Undo", "Redo", "Cut", "Copy", "Paste", "Select All", "Delete Chat"}


def test_damaged_choices_leave_every_command_its_default() -> None:
    defaults = keys_of({})
    bad = {"switcher": "Ctrl+N", "new-folder": "rubbish+", "copy": "Ctrl+J", "gone": "Ctrl+U"}
    assert keys_of(bad) == defaults
    swapped = keys_of({"switcher": "Ctrl+N", "new-chat": "Ctrl+K"})
    assert swapped[CommandId.SWITCHER] == [QKeySequence("Ctrl+N")]
    assert swapped[CommandId.NEW_CHAT] == [QKeySequence("Ctrl+K")]


def test_no_default_key_is_refused() -> None:
    keys = keys_of({})
    refused = {
        one.toString(): refusal(command, one, keys) for command in keys for one in keys[command]
    }
    assert set(refused.values()) == {""}
