from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QDialog, QLabel, QMenu, QPushButton

from app.conversation.preset import Preset
from app.settings import Appearance, Settings
from app.theme.tokens import DARK, DARK_SHARP, LIGHT, LIGHT_SHARP
from app.widgets.commands import COMMANDS, CommandId, key_sequences, tooltip
from tests.app.conftest import MakeStage
from tests.fakes.stage import CTRL, Key, Stage


def test_menu_bar_has_every_command_once(stage: Stage) -> None:
    leaves = _leaves(stage.window.menuBar().actions())
    # The chats at the end of the Window menu are no commands, and have no name.
    shown = [action.objectName() for action in leaves if action.objectName()]
    assert shown == [command.id for command in COMMANDS]
    assert set(shown) == set(CommandId)


def test_every_command_has_an_owner(stage: Stage) -> None:
    commands = stage.window.commands
    unconnected = [id_ for id_, one in commands.items() if not one.receivers("2triggered(bool)")]
    assert not unconnected


def _leaves(actions: Sequence[QAction]) -> Iterator[QAction]:
    """Yield the commands of a menu and its submenus."""
    for action in actions:
        menu = action.menu()
        if isinstance(menu, QMenu):
            yield from _leaves(menu.actions())
        elif not action.isSeparator():
            yield action


def test_menu_entries_show_each_ampersand(stage: Stage) -> None:
    stage.chat("Cats & dogs", "Yes.")
    stage.rig.core.presets.save_preset(Preset(name="Maths & logic"))
    menus = stage.window.findChildren(QMenu)
    for menu in menus:
        menu.aboutToShow.emit()  # fills those with presets and models
    texts = [action.text() for menu in menus for action in menu.actions()]
    assert {"Memory && Storage…", "Cats && dogs", "Maths && logic"} <= set(texts)
    assert not [text for text in texts if "&" in text.replace("&&", "")]
    action = stage.window.commands[CommandId.MEMORY_MAP]
    assert tooltip(action).startswith("Memory & Storage  ")


@pytest.mark.usefixtures("qapp")  # Qt knows the standard keys of an application
def test_no_two_commands_share_a_key() -> None:
    keys = [key.toString() for command in COMMANDS for key in key_sequences(command)]
    assert len(keys) == len(set(keys))


def test_shortcut_sheet_shows_every_key_once(stage: Stage) -> None:
    stage.run(CommandId.SHORTCUTS)
    dialog = stage.window.findChild(QDialog, "shortcuts")
    assert dialog is not None
    shown = [label.text() for label in dialog.findChildren(QLabel)]
    keyed = [command for command in COMMANDS if key_sequences(command)]
    for command in keyed:
        assert command.text.removesuffix("…") in shown
        key = key_sequences(command)[0].toString(QKeySequence.SequenceFormat.NativeText)
        assert shown.count(key) == 1
    QTest.keyClick(dialog, Key.Key_Escape)
    assert not dialog.isVisible()


@pytest.mark.parametrize("command", [CommandId.SHORTCUTS, CommandId.REMEMBERING])
def test_sheet_of_the_help_menu_has_a_heading_and_a_button_that_closes_it(
    stage: Stage, command: CommandId
) -> None:
    stage.run(command)
    (dialog,) = (one for one in stage.window.findChildren(QDialog) if one.isVisible())
    # A sheet of a Mac has no title bar.
    assert dialog.findChildren(QLabel)[0].text() == dialog.windowTitle()
    (done,) = dialog.findChildren(QPushButton)
    done.click()
    assert not dialog.isVisible()


def test_tooltip_of_a_command_has_its_key(stage: Stage) -> None:
    action = stage.window.commands[CommandId.NEW_CHAT]
    key = QKeySequence(QKeySequence.StandardKey.New).toString(
        QKeySequence.SequenceFormat.NativeText
    )
    assert tooltip(action) == f"New Chat  {key}"


def test_command_without_effect_is_disabled(stage: Stage) -> None:
    commands = stage.window.commands
    idle = (CommandId.STOP, CommandId.REGENERATE, CommandId.EDIT_LAST, CommandId.DELETE)
    assert not any(commands[command].isEnabled() for command in idle)
    stage.send("Hello")
    assert commands[CommandId.STOP].isEnabled()
    assert not commands[CommandId.REGENERATE].isEnabled()
    stage.answer("Hi")
    assert not commands[CommandId.STOP].isEnabled()
    assert commands[CommandId.REGENERATE].isEnabled()
    assert not commands[CommandId.PREVIOUS_VERSION].isEnabled()
    stage.run(CommandId.REGENERATE)
    stage.answer("Hi again")
    assert commands[CommandId.PREVIOUS_VERSION].isEnabled()


def test_new_chat_key_in_the_composer_opens_a_new_chat(stage: Stage) -> None:
    stage.chat("Hello", "Hi")
    QTest.keyClick(stage.edit, Key.Key_N, CTRL)
    stage.settle()
    assert stage.pane.empty.heading.isVisible()


def test_appearance_command_applies_at_once_and_is_saved(make_stage: MakeStage) -> None:
    stage = make_stage(settings=Settings(appearance=Appearance.LIGHT))
    assert stage.theme.colors is LIGHT
    stage.run(CommandId.DARK)
    assert stage.theme.colors is DARK
    assert DARK.canvas in stage.window.styleSheet()
    assert stage.rig.core.preferences.value.appearance is Appearance.DARK
    stage.run(CommandId.LIGHT)
    assert stage.theme.colors is LIGHT


@pytest.mark.slow
def test_contrast_command_works_in_light_and_dark_appearance(make_stage: MakeStage) -> None:
    stage = make_stage(settings=Settings(appearance=Appearance.LIGHT))
    stage.run(CommandId.CONTRAST)
    assert stage.theme.colors is LIGHT_SHARP
    stage.run(CommandId.DARK)
    assert stage.theme.colors is DARK_SHARP
    assert stage.theme.is_dark
    stage.run(CommandId.CONTRAST)
    assert stage.theme.colors is DARK
    assert not stage.rig.core.preferences.value.more_contrast


@pytest.mark.slow
def test_text_size_stays_between_80_and_200_percent(stage: Stage) -> None:
    for near, command, end in ((190, CommandId.ZOOM_IN, 200), (90, CommandId.ZOOM_OUT, 80)):
        stage.core.preferences.change(text_zoom=near)
        for _ in range(2):
            stage.window.commands[command].trigger()
            assert stage.rig.core.preferences.value.text_zoom == end
    stage.run(CommandId.ZOOM_RESET)
    assert stage.rig.core.preferences.value.text_zoom == 100


def test_sidebar_and_inspector_commands_show_and_hide_them(stage: Stage) -> None:
    window = stage.window
    stage.run(CommandId.SIDEBAR)
    assert not window.sidebar.isVisible()
    assert window.toolbar.sidebar_button.isVisible()
    stage.run(CommandId.INSPECTOR)
    assert window.inspector.isVisible()
    stage.run(CommandId.SIDEBAR)
    assert window.sidebar.isVisible()
    assert not window.toolbar.sidebar_button.isVisible()


def test_hidden_panel_hands_its_focus_to_the_composer(stage: Stage) -> None:
    window = stage.window
    stage.run(CommandId.INSPECTOR)
    for field, command in (
        (window.inspector.prompt, CommandId.INSPECTOR),
        (window.sidebar.search.edit, CommandId.SIDEBAR),
    ):
        field.setFocus()
        stage.run(command)
        assert not field.isVisible()
        assert stage.edit.hasFocus()


def test_narrow_window_with_large_text_hides_the_sidebar_until_it_is_asked_for(
    stage: Stage,
) -> None:
    window, preferences = stage.window, stage.core.preferences
    window.resize(640, 480)
    assert window.sidebar.isVisible()
    preferences.set_zoom(200)
    assert not window.sidebar.isVisible()
    assert not window.commands[CommandId.SIDEBAR].isChecked()

    stage.run(CommandId.SIDEBAR)
    assert window.sidebar.isVisible()
    stage.run(CommandId.SIDEBAR)
    assert not window.sidebar.isVisible()
    stage.run(CommandId.SEARCH)
    assert window.sidebar.search.edit.hasFocus()

    window.resize(1200, 700)
    assert window.sidebar.isVisible()
    window.resize(640, 480)
    assert not window.sidebar.isVisible()
    assert stage.edit.hasFocus()
    preferences.set_zoom(100)
    assert window.sidebar.isVisible()
    assert preferences.value.sidebar_visible


def test_narrow_window_shows_sidebar_or_inspector_not_both(stage: Stage) -> None:
    window = stage.window
    window.resize(640, 480)
    stage.run(CommandId.INSPECTOR)
    assert window.inspector.isVisible()
    assert not window.sidebar.isVisible()
    stage.run(CommandId.SIDEBAR)
    assert window.sidebar.isVisible()
    assert not window.inspector.isVisible()
    stage.run(CommandId.INSPECTOR)
    window.resize(1200, 700)
    assert window.sidebar.isVisible()
    assert window.inspector.isVisible()
