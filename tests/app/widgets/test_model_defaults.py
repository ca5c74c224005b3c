"""The sheet with the options of one model, by mouse and keys, and what the engine gets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton

from app.conversation.preset import Preset
from app.settings import ModelDefaults, Settings, load_settings, save_settings
from app.viewmodels.offer import OfferAction
from app.widgets.commands import CommandId
from app.widgets.menu import Menu
from app.widgets.model_defaults import ModelDefaultsSheet
from app.widgets.models_window import ModelsTab, ModelsWindow
from engine.events import LoadModel
from tests.app.conftest import MakeStage
from tests.fakes.rig import FakeCatalog, card
from tests.fakes.stage import Key, Stage

pytestmark = pytest.mark.qt_log_ignore("does not support (raise|grabbing)", extend=True)
PATH = "/models/Tiny-9B-4bit"


def last_load(stage: Stage) -> LoadModel:
    return [command for command in stage.engine.commands if isinstance(command, LoadModel)][-1]


def click(button: QPushButton) -> None:
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)


def open_sheet(stage: Stage) -> ModelDefaultsSheet:
    stage.run(CommandId.GET_MODELS)
    window = stage.window.findChild(ModelsWindow)
    assert window is not None
    window.show_tab(ModelsTab.LOCAL)
    stage.wait_until(lambda: bool(window.local.rows))
    click(window.local.rows[0].buttons[OfferAction.DEFAULTS])
    sheet = window.findChild(ModelDefaultsSheet)
    assert sheet is not None
    assert sheet.isVisible()
    return sheet


def defaults(stage: Stage) -> ModelDefaults:
    return stage.core.preferences.defaults_of(PATH)


def test_options_of_a_model_that_cannot_think_have_no_thinking(stage: Stage) -> None:
    assert open_sheet(stage).thinking.isVisible()
    stage.engine.facts = replace(stage.engine.facts, has_thinking=False)
    stage.engine.send(LoadModel(PATH))
    stage.settle()
    sheets = stage.window.findChildren(ModelDefaultsSheet)
    sheets[0].accept()
    stage.settle()
    assert not open_sheet(stage).thinking.isVisible()


def test_new_chats_begin_with_the_thinking_of_their_model(stage: Stage) -> None:
    stage.send("Hello")
    stage.answer("Hi")
    sheet = open_sheet(stage)
    click(sheet.thinking.buttons[False])
    assert defaults(stage).thinking is False
    assert stage.rig.current.setup.thinking is None, "a chat that has begun changes"
    sheet.done_button.click()
    stage.run(CommandId.NEW_CHAT)
    stage.send("Hello again")
    assert stage.engine.submitted[-1].thinking is False


def test_new_chats_begin_with_the_preset_of_their_model(stage: Stage) -> None:
    stage.core.presets.save_preset(Preset(name="Short", system_prompt="Be brief."))
    sheet = open_sheet(stage)
    menu = sheet.preset.menu()
    assert isinstance(menu, Menu)
    menu.aboutToShow.emit()
    menu.actions()[1].trigger()
    assert sheet.preset.text() == "Short"
    assert stage.rig.current.system_prompt == "Be brief."


def test_engine_gets_limit_and_bits_when_the_model_is_loaded_again(stage: Stage) -> None:
    sheet = open_sheet(stage)
    assert not sheet.load_button.isVisible()
    QTest.keyClicks(sheet.context, "4096")
    QTest.keyClick(sheet.context, Key.Key_Return)
    click(sheet.memory.buttons[8])
    assert last_load(stage) == LoadModel(PATH)
    assert sheet.load_button.isVisible()
    click(sheet.load_button)
    stage.settle()
    assert last_load(stage) == LoadModel(PATH, kv_bits=8, context_len=4096)
    assert not sheet.load_button.isVisible()


def test_options_of_a_model_that_is_not_in_use_wait_for_its_load(make_stage: MakeStage) -> None:
    other = card("Other-4B", num_parameters=4_000_000_000)
    saved = Settings(model_defaults={str(other.path): ModelDefaults(kv_bits=4)})
    stage = make_stage(settings=saved, catalog=FakeCatalog(cards=(card(), other)))
    assert last_load(stage) == LoadModel(PATH)
    stage.rig.models.choose(other.path)
    assert last_load(stage) == LoadModel(str(other.path), kv_bits=4)


def test_sheet_is_used_by_keys_and_closed_by_escape(stage: Stage) -> None:
    sheet = open_sheet(stage)
    sheet.memory.buttons[0].setFocus()
    QTest.keyClick(sheet.memory.buttons[0], Key.Key_Right)
    QTest.keyClick(sheet.memory.buttons[8], Key.Key_Space)
    assert defaults(stage).kv_bits == 8
    QTest.keyClick(sheet, Key.Key_Escape)
    assert not sheet.isVisible()


def test_limit_above_that_of_the_model_is_not_accepted(stage: Stage) -> None:
    sheet = open_sheet(stage)
    QTest.keyClicks(sheet.context, "99999")
    QTest.keyClick(sheet.context, Key.Key_Return)
    assert defaults(stage).context_len == 0


def test_options_survive_saving_and_wrong_values_are_dropped(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    saved = Settings(model_defaults={"/a": ModelDefaults(thinking=True, context_len=9, kv_bits=4)})
    save_settings(path, saved)
    assert load_settings(path).settings == saved
    path.write_text('{"model_defaults": {"/a": {"thinking": 1, "context_len": -4, "kv_bits": 5}}}')
    assert load_settings(path).settings.model_defaults == {"/a": ModelDefaults()}
    path.write_text('{"model_defaults": {"/a": 3}}')
    assert load_settings(path).settings.model_defaults == {"/a": ModelDefaults()}
