"""Presets: saving, applying, replacing, deleting and undo in the inspector's preset menu."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QMenu

from app.conversation.preset import Preset
from app.conversation.tree import Setup
from app.settings import Settings
from app.widgets.commands import CommandId
from app.widgets.preset_sheet import PresetSheet
from tests.app.conftest import MakeStage
from tests.fakes.stage import Stage

PATIENT = Setup(temperature=0.3, top_k=40)


def open_inspector(make_stage: MakeStage) -> Stage:
    return make_stage(settings=Settings(inspector_visible=True))


def entry(stage: Stage, *words: str) -> QAction:
    """Return an entry of the preset menu. `words`: the titles of its submenus, its text."""
    menu = stage.window.inspector.preset.menu()
    menu.aboutToShow.emit()
    for word in words[:-1]:
        submenu = next(one for one in menu.findChildren(QMenu) if one.title() == word)
        menu = submenu
    return next(action for action in menu.actions() if action.text() == words[-1])


def save_as(stage: Stage, name: str) -> None:
    entry(stage, "Save as Preset…").trigger()
    sheet = stage.window.findChildren(PresetSheet)[-1]
    QTest.keyClicks(sheet.name, name)  # the suggested name is selected
    QTest.keyClick(sheet.name, Qt.Key.Key_Return)
    stage.settle()


def make_teacher(stage: Stage) -> None:
    stage.rig.chat.set_setup(stage.current, PATIENT)
    QTest.keyClicks(stage.window.inspector.prompt, "Be patient.")
    save_as(stage, " Teacher & co ")


def test_saved_preset_can_be_applied_to_another_chat(make_stage: MakeStage) -> None:
    stage = open_inspector(make_stage)
    button = stage.window.inspector.preset
    assert button.accessibleName() == "Preset: None"
    make_teacher(stage)
    assert button.accessibleName() == "Preset: Teacher & co"
    stage.chat("Hello", "Hi")
    stage.run(CommandId.NEW_CHAT)
    assert button.accessibleName() == "Preset: None"
    entry(stage, "Teacher && co").trigger()
    stage.settle()
    assert (stage.rig.current.system_prompt, stage.rig.current.setup) == ("Be patient.", PATIENT)
    assert stage.window.inspector.prompt.toPlainText() == "Be patient."
    stage.chat("Hello", "Hi")
    assert stage.engine.submitted[-1].sampling.top_k == 40
    stage.rig.chat.set_setup(stage.current, Setup())
    assert button.accessibleName() == "Preset: None"


def test_new_chat_starts_with_the_models_default_preset(make_stage: MakeStage) -> None:
    stage = open_inspector(make_stage)
    make_teacher(stage)
    stage.chat("Hello", "Hi")
    model = f"New Chats with {stage.window.toolbar.model_button.text()}"
    stage.run(CommandId.NEW_CHAT)
    assert stage.rig.current.system_prompt == ""
    entry(stage, model, "Teacher && co").trigger()
    stage.settle()
    assert stage.rig.current.system_prompt == "Be patient.", "the empty chat has no preset"
    assert stage.rows == ["TODAY", "Hello"], "the empty chat is listed"
    stage.chat("One", "1")
    stage.run(CommandId.NEW_CHAT)
    assert stage.rig.current.setup == PATIENT
    entry(stage, model, "Start Without Preset").trigger()
    stage.settle()
    assert stage.rig.current.setup == Setup()


def test_presets_and_default_are_restored_at_the_next_start(make_stage: MakeStage) -> None:
    stage = open_inspector(make_stage)
    make_teacher(stage)
    entry(
        stage, f"New Chats with {stage.window.toolbar.model_button.text()}", "Teacher && co"
    ).trigger()
    stage.chat("Hello", "Hi")
    stage.close()
    again = open_inspector(make_stage)
    again.run(CommandId.NEW_CHAT)
    assert again.rig.current.system_prompt == "Be patient."
    assert again.window.inspector.preset.accessibleName() == "Preset: Teacher & co"


def test_undo_of_a_deleted_preset_restores_it_as_default(
    make_stage: MakeStage,
) -> None:
    stage = open_inspector(make_stage)
    make_teacher(stage)
    stage.chat("Hello", "Hi")
    model = f"New Chats with {stage.window.toolbar.model_button.text()}"
    entry(stage, model, "Teacher && co").trigger()
    entry(stage, "Delete Preset", "Teacher && co").trigger()
    stage.settle()
    assert stage.window.toast.text == "Deleted preset “Teacher & co”"
    assert not stage.rig.core.presets.value.by_name
    stage.run(CommandId.UNDO)
    stage.run(CommandId.NEW_CHAT)
    assert stage.rig.current.system_prompt == "Be patient."


def test_undo_of_a_replaced_preset_restores_the_old_one(make_stage: MakeStage) -> None:
    stage = open_inspector(make_stage)
    make_teacher(stage)
    stage.rig.chat.set_setup(stage.current, Setup(temperature=1.0))
    save_as(stage, "Teacher & co")
    assert stage.window.toast.text == "Replaced preset “Teacher & co”"
    stage.rig.core.undoing.undo()
    assert stage.rig.core.presets.value.by_name["Teacher & co"].setup == PATIENT


def test_sheet_says_what_its_name_would_replace(make_stage: MakeStage) -> None:
    stage = open_inspector(make_stage)
    make_teacher(stage)
    entry(stage, "Save as Preset…").trigger()
    sheet = stage.window.findChildren(PresetSheet)[-1]
    assert sheet.name.selectedText() == "Teacher & co"
    assert sheet.note.text() == "Replaces your preset “Teacher & co”. You can undo that."
    QTest.keyClicks(sheet.name, " ")
    assert not sheet.save_button.isEnabled()
    QTest.keyClick(sheet.name, Qt.Key.Key_Return)
    assert sheet.isVisible()
    QTest.keyClicks(sheet.name, "Editor")
    assert "other chats" in sheet.note.text()
    QTest.mouseClick(sheet.cancel_button, Qt.MouseButton.LeftButton)
    assert list(stage.rig.core.presets.value.by_name) == ["Teacher & co"]


def test_undo_of_a_deleted_preset_renames_it_if_its_name_is_taken(make_stage: MakeStage) -> None:
    stage = open_inspector(make_stage)
    make_teacher(stage)
    stage.rig.core.presets.delete("Teacher & co")
    stage.rig.chat.set_setup(stage.current, Setup(temperature=1.0))
    save_as(stage, "Teacher & co")
    stage.rig.core.undoing.undo()
    presets = stage.rig.core.presets.value.by_name
    assert presets["Teacher & co"].setup == Setup(temperature=1.0)
    assert presets["Teacher & co 2"].setup == PATIENT


def test_applying_a_preset_keeps_the_chats_seed(make_stage: MakeStage) -> None:
    stage = open_inspector(make_stage)
    make_teacher(stage)
    stage.rig.chat.set_setup(stage.current, Setup(seed=7))
    entry(stage, "Teacher && co").trigger()
    stage.settle()
    assert stage.rig.current.setup.seed == 7


def test_preset_saved_while_presets_load_is_kept(make_stage: MakeStage) -> None:
    stage = open_inspector(make_stage)
    presets = stage.rig.core.presets
    presets.save_preset(Preset(name="b"))
    presets.start()  # reads the presets from the disk on another thread
    presets.save_preset(Preset(name="a", system_prompt="A"))
    stage.settle()
    assert list(presets.value.by_name) == ["a", "b"]
