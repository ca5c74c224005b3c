from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtGui import QColor
from PySide6.QtTest import QTest

from app.controllers import prompt_size
from app.conversation.tree import Setup
from app.settings import Settings
from app.theme.icons import Icon
from app.theme.tokens import LIGHT, Space
from app.widgets.commands import CommandId
from app.widgets.inspector import Inspector
from app.widgets.settings_shortcuts import ShortcutsPage
from app.widgets.settings_window import SettingsWindow
from engine.types import SamplingParams
from tests.app.conftest import MakeStage
from tests.fakes.fake_engine import FACTS
from tests.fakes.stage import Key, Stage


def open_inspector(make_stage: MakeStage) -> Stage:
    return make_stage(settings=Settings(inspector_visible=True))


@pytest.mark.qt_log_ignore("does not support raise", extend=True)
def test_inspector_and_shortcuts_page_are_created_when_they_are_first_shown(stage: Stage) -> None:
    window = stage.window
    stage.run(CommandId.SETTINGS)
    assert window.findChild(Inspector) is None
    assert window.findChild(ShortcutsPage) is None
    stage.run(CommandId.INSPECTOR)
    (inspector,) = window.findChildren(Inspector)
    assert inspector.isVisible()
    assert inspector.number.text() == "0.60"
    inspector.faster.setFocus()
    QTest.keyClick(inspector.faster, Key.Key_Tab)
    assert window.toolbar.isAncestorOf(window.focusWidget())
    settings = window.findChild(SettingsWindow)
    assert isinstance(settings, SettingsWindow)
    settings.tabs[Icon.KEYBOARD].click()
    assert settings.shortcuts.field.isVisible()


def test_system_prompt_is_sent_as_the_first_message(make_stage: MakeStage) -> None:
    stage = open_inspector(make_stage)
    QTest.keyClicks(stage.window.inspector.prompt, "Be brief.")
    stage.chat("Hello", "Hi")
    messages = stage.engine.submitted[0].messages
    assert [message.content for message in messages] == ["Be brief.", "Hello"]
    assert stage.engine.submitted[0].new_messages == {0, 1}


def test_system_prompt_is_kept_by_the_chat_where_it_was_typed(make_stage: MakeStage) -> None:
    stage = open_inspector(make_stage)
    stage.chat("Hello", "Hi")
    first = stage.current
    QTest.keyClicks(stage.window.inspector.prompt, "Be brief.")
    stage.run(CommandId.NEW_CHAT)
    assert stage.window.inspector.prompt.toPlainText() == ""
    assert stage.rig.current.system_prompt == ""
    assert stage.rig.desk.get(first).system_prompt == "Be brief."


def test_temperature_is_set_by_slider_or_number_and_reset(make_stage: MakeStage) -> None:
    stage = open_inspector(make_stage)
    inspector = stage.window.inspector
    assert inspector.number.text() == "0.60", "the model's own temperature is not shown"
    assert not inspector.reset.isEnabled()
    inspector.slider.setValue(20)
    assert inspector.number.text() == "1.00"
    assert stage.rig.current.setup == Setup(temperature=1.0)
    inspector.number.setText("0.25")
    inspector.number.editingFinished.emit()
    assert inspector.slider.value() == 5
    stage.chat("Hello", "Hi")
    assert stage.engine.submitted[0].sampling.temperature == 0.25
    inspector.reset.click()
    assert inspector.number.text() == "0.60"
    assert stage.rig.current.setup == Setup()


def test_default_of_a_model_without_a_temperature_is_not_called_the_models(
    make_stage: MakeStage,
) -> None:
    stage = make_stage(settings=Settings(inspector_visible=True), hold_load=True)
    # The loader puts the app's own temperature in the place of one that the model does not have.
    stage.engine.facts = replace(FACTS, default_sampling=SamplingParams())
    stage.engine.finish_load()
    stage.settle()
    assert stage.window.inspector.reset.text() == "Default: 0.70"


def test_temperature_out_of_range_is_rejected(make_stage: MakeStage) -> None:
    stage = open_inspector(make_stage)
    inspector = stage.window.inspector
    for text in ("7", "hot", ""):
        inspector.number.selectAll()
        QTest.keyClicks(inspector.number, text)
        QTest.keyClick(inspector.number, Key.Key_Return)
        stage.edit.setFocus()
        temperature = stage.rig.current.setup.temperature
        assert temperature is None or 0 <= temperature <= 2


def test_typed_seed_is_sent_with_the_request(make_stage: MakeStage) -> None:
    stage = open_inspector(make_stage)
    QTest.keyClicks(stage.window.inspector.seed, "42")
    QTest.keyClick(stage.window.inspector.seed, Key.Key_Return)
    stage.chat("Hello", "Hi")
    assert stage.engine.submitted[0].sampling.seed == 42


def test_thinking_set_in_the_inspector_shows_in_the_composer(make_stage: MakeStage) -> None:
    stage = open_inspector(make_stage)
    assert FACTS.has_thinking
    stage.window.inspector.thinking.menu().actions()[2].trigger()
    assert stage.composer.thinking.text() == "Thinking: Off"
    stage.chat("Hello", "Hi")
    assert stage.engine.submitted[0].thinking is False


def test_typed_sampling_values_are_sent_and_can_be_cleared(make_stage: MakeStage) -> None:
    stage = open_inspector(make_stage)
    fields = stage.window.inspector.sampling.fields
    assert [field.text() for field in fields.values()] == [""] * len(fields)
    assert fields["top_p"].placeholderText() == "Default: 0.95"
    assert fields["max_tokens"].placeholderText() == "Default: 4,096"
    typed = {
        "top_p": "0.8",
        "top_k": "40",
        "min_p": "0.05",
        "min_kept": "3",
        "xtc_probability": "0.5",
        "xtc_threshold": "0.2",
        "repetition_penalty": "1.2",
        "presence_penalty": "-0.5",
        "frequency_penalty": "0.25",
        "max_tokens": "99",
    }
    for name, text in typed.items():
        QTest.keyClicks(fields[name], text)
        QTest.keyClick(fields[name], Key.Key_Return)
    stage.chat("Hello", "Hi")
    request = stage.engine.submitted[0]
    sampling = request.sampling
    assert (sampling.top_p, sampling.top_k, sampling.min_p) == (0.8, 40, 0.05)
    assert (sampling.min_kept, sampling.xtc_probability) == (3, 0.5)
    assert sampling.xtc_threshold == 0.2
    assert (sampling.repetition_penalty, sampling.presence_penalty) == (1.2, -0.5)
    assert (sampling.frequency_penalty, request.max_tokens) == (0.25, 99)
    fields["top_k"].selectAll()
    QTest.keyClick(fields["top_k"], Key.Key_Backspace)
    QTest.keyClick(fields["top_k"], Key.Key_Return)
    assert stage.rig.current.setup.top_k is None


def test_number_being_typed_stays_while_a_prompt_is_read(make_stage: MakeStage) -> None:
    stage = open_inspector(make_stage)
    field = stage.window.inspector.sampling.fields["top_p"]
    stage.send("Hello")
    field.setFocus()
    QTest.keyClicks(field, "0.8")
    stage.engine.prefill(1, 10)
    stage.settle()
    assert field.text() == "0.8"
    QTest.keyClick(field, Key.Key_Return)
    assert stage.rig.current.setup.top_p == 0.8


def test_sampling_value_out_of_range_is_rejected(make_stage: MakeStage) -> None:
    stage = open_inspector(make_stage)
    field = stage.window.inspector.sampling.fields["top_p"]
    QTest.keyClicks(field, "1.5")
    QTest.keyClick(field, Key.Key_Return)
    assert stage.rig.current.setup == Setup()


def test_faster_answers_are_set_for_one_chat(make_stage: MakeStage) -> None:
    stage = open_inspector(make_stage)
    chip = stage.window.inspector.faster
    stage.chat("Hello", "Hi")
    as_settings, on, off = chip.menu().actions()
    off.trigger()
    stage.chat("And?", "So")
    stage.core.preferences.toggle_faster_answers()
    on.trigger()
    stage.chat("More?", "Yes")
    as_settings.trigger()
    stage.chat("Last?", "No")

    assert [request.max_drafts for request in stage.engine.submitted] == [None, 0, None, 0]
    stage.run(CommandId.NEW_CHAT)
    assert stage.rig.current.setup == Setup()
    assert chip.text() == "Faster answers: Auto"


def test_changed_system_prompt_shows_what_the_model_will_read(
    make_stage: MakeStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prompt_size, "COUNT_MS", 0)
    stage = open_inspector(make_stage)
    note = stage.window.inspector.prompt_cost
    assert not note.isVisible()
    stage.chat("Hello", "Hi. " * 100)
    unchanged = "If you change it, the model reads the whole chat: about 110 tokens."
    stage.wait_until(lambda: note.text() == unchanged)
    stage.core.chat.set_system_prompt(stage.current, "Be brief. " * 40)
    stage.wait_until(lambda: note.text().startswith("Changed."))
    assert note.isVisible()
    stage.send("Again")
    assert not note.text().startswith("Changed.")


def test_cost_of_the_system_prompt_is_shown_while_the_same_messages_are_counted_again(
    make_stage: MakeStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prompt_size, "COUNT_MS", 0)
    stage = open_inspector(make_stage)
    note = stage.window.inspector.prompt_cost
    stage.chat("Hello", "Hi. " * 100)
    stage.wait_until(lambda: note.text().endswith("about 110 tokens."))
    counts = len(stage.engine.counts)
    stage.engine.hold_counts = True
    QTest.keyClicks(stage.window.inspector.sampling.fields["top_p"], "0.8")
    QTest.keyClick(stage.window.inspector.sampling.fields["top_p"], Key.Key_Return)
    stage.composer.set_text("A draft. " * 20)
    stage.pane.draft.flush()
    stage.wait_until(lambda: len(stage.engine.counts) > counts)
    assert note.text().endswith("about 110 tokens."), "the lines below it keep their places"
    stage.engine.finish_counts()
    stage.wait_until(lambda: note.text().endswith("about 160 tokens."))

    stage.composer.set_text("")
    stage.send("Again")
    assert note.isHidden(), "the answer is not known yet"


def test_fields_of_the_sampling_options_are_equally_wide_and_show_their_defaults(
    make_stage: MakeStage,
) -> None:
    stage = open_inspector(make_stage)
    stage.settle()
    fields = stage.window.inspector.sampling.fields.values()
    assert len({field.width() for field in fields}) == 1
    for field in fields:
        inside = field.width() - 2 * (Space.S + 1 + 2)
        assert field.fontMetrics().horizontalAdvance(field.placeholderText()) <= inside
        ground = field.grab().toImage().pixelColor(Space.S, field.height() // 2)
        assert ground == QColor(LIGHT.raised)
