"""Actions of the random user on a chat's system prompt, options, presets and model."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QDialog, QLineEdit, QMenu, QPushButton

from app.viewmodels.models import ModelPhase
from app.widgets.commands import CommandId
from app.widgets.model_picker import ModelPicker
from tests.person.kinds.registry import kind
from tests.person.person import CTRL, Person


def _inspect(person: Person) -> None:
    if not person.window.inspector.isVisible():
        person.run(CommandId.INSPECTOR)
    person.wait_until(person.window.inspector.isVisible)


@kind("write a system prompt")
def write_system_prompt(person: Person) -> bool:
    _inspect(person)
    prompt = person.window.inspector.prompt
    text = f"Prompt {person.random.randrange(1000)}"
    prompt.setFocus()
    person.press(Qt.Key.Key_A, CTRL)
    QTest.keyClicks(prompt, text)
    person.edit.setFocus()
    person.settle()
    assert person.conversation.system_prompt == text
    return True


@kind("set how tokens are drawn")
def set_sampling(person: Person) -> bool:
    _inspect(person)
    name, text = person.random.choice(
        (("top_p", "0.9"), ("top_k", "40"), ("min_p", "0.05"), ("repetition_penalty", "1.1"))
    )
    if getattr(person.conversation.setup, name) is not None:
        text = ""
    _enter(person, person.window.inspector.sampling.fields[name], text)
    assert getattr(person.conversation.setup, name) == (float(text) if text else None)
    return True


@kind("set the longest answer")
def set_max_tokens(person: Person) -> bool:
    _inspect(person)
    number = person.random.randint(4, 60)
    _enter(person, person.window.inspector.sampling.fields["max_tokens"], str(number))
    assert person.conversation.setup.max_tokens == number
    return True


@kind("set the temperature")
def set_temperature(person: Person) -> bool:
    _inspect(person)
    text = f"{person.random.randint(1, 19) / 10:.1f}"
    _enter(person, person.window.inspector.number, text)
    assert person.conversation.setup.temperature == float(text)
    return True


@kind("set the seed")
def set_seed(person: Person) -> bool:
    _inspect(person)
    number = person.random.randrange(10_000)
    _enter(person, person.window.inspector.seed, str(number))
    assert person.conversation.setup.seed == number
    return True


def _enter(person: Person, field: QLineEdit, text: str) -> None:
    field.setFocus()
    field.selectAll()
    QTest.keyClick(field, Qt.Key.Key_Backspace)
    QTest.keyClicks(field, text)
    QTest.keyClick(field, Qt.Key.Key_Return)
    person.settle()


@kind("save a preset")
def save_preset(person: Person) -> bool:
    _inspect(person)
    if len(person.core.presets.value.by_name) > 6:
        return False
    name = f"preset {person.random.randrange(100)}"
    _choose(_menu_of(person.window.inspector.preset), "Save as Preset…")
    dialog = person.window.findChild(QDialog)
    assert isinstance(dialog, QDialog)
    field = dialog.findChild(QLineEdit)
    assert isinstance(field, QLineEdit)
    field.selectAll()
    QTest.keyClicks(field, name)
    QTest.keyClick(field, Qt.Key.Key_Return)
    person.settle()
    assert name in person.core.presets.value.by_name
    return True


@kind("take a preset over")
def take_preset(person: Person) -> bool:
    _inspect(person)
    names = list(person.core.presets.value.by_name)
    name = person.random.choice(names)
    preset = person.core.presets.value.by_name[name]
    _choose(_menu_of(person.window.inspector.preset), name)
    person.settle()
    assert person.conversation.system_prompt == preset.system_prompt
    return True


@kind("delete a preset")
def delete_preset(person: Person) -> bool:
    _inspect(person)
    names = [one for one in person.core.presets.value.by_name if one.startswith("preset")]
    if not names:
        return False
    name = person.random.choice(names)
    menu = _menu_of(person.window.inspector.preset)
    deleting = next(one.menu() for one in menu.actions() if one.text() == "Delete Preset")
    assert isinstance(deleting, QMenu)
    _choose(deleting, name)
    person.settle()
    assert name not in person.core.presets.value.by_name
    return True


def _menu_of(button: QPushButton) -> QMenu:
    menu = button.menu()
    menu.aboutToShow.emit()
    return menu


def _choose(menu: QMenu, words: str) -> None:
    next(action for action in menu.actions() if action.text() == words).trigger()


@kind("turn thinking on or off")
def choose_thinking(person: Person) -> bool:
    chip = person.pane.composer.thinking
    if not chip.isVisible():
        return False
    words = person.random.choice(("Auto", "On", "Off"))
    _choose(chip.menu(), words)
    person.settle()
    assert person.conversation.setup.thinking is {"Auto": None, "On": True, "Off": False}[words]
    return True


@kind("choose a model")
def choose_model(person: Person) -> bool:
    person.press(Qt.Key.Key_L, CTRL)
    picker = person.window.findChild(ModelPicker)
    assert isinstance(picker, ModelPicker)
    assert picker.isVisible()
    other = next(card for card in person.cards if str(card.path) != person.core.models.status.path)
    QTest.keyClick(picker.list, Qt.Key.Key_Home)
    for _ in person.cards:
        index = picker.list.currentIndex()
        if picker.list.model().data(index) == other.title:
            break
        QTest.keyClick(picker.list, Qt.Key.Key_Down)
    QTest.keyClick(picker.list, Qt.Key.Key_Return)
    assert not picker.isVisible()
    person.confirm_model(agrees=person.random.random() < 0.5)
    if person.core.models.status.path != str(other.path):
        return False
    if person.random.random() < 0.5:
        person.wait_until(lambda: person.core.models.status.phase is ModelPhase.READY)
    return True


@kind("answer which model continues the chat")
def answer_model_question(person: Person) -> bool:
    line = person.pane.model_question
    if not line.isVisible():
        return False
    used, kept = person.core.models.status.path, person.random.random() < 0.5
    person.click(line.second if kept else line.first)
    person.confirm_model(agrees=True)
    assert not line.isVisible()
    assert (person.core.models.status.path == used) is kept
    return True
