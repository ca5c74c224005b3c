"""Actions in the composer: send, type a draft, queue a message, take it back."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from app.widgets.send_button import SendState
from tests.person.kinds.answers import regenerate_with_key
from tests.person.kinds.registry import kind
from tests.person.person import CTRL, LEFT, Person


def _sent(person: Person, text: str) -> bool:
    """Record a sent message. Assert that the chat has the message and the composer is empty."""
    person.entrust(text)
    assert person.edit.toPlainText() == ""
    assert text in person.texts, text
    return True


def _written(person: Person) -> str | None:
    """Write a message into the composer and return it.

    Return None if an answer is in progress or the composer already has text."""
    if person.answers or person.edit.toPlainText():
        return None
    person.stay_with_model()
    text = person.some_text()
    person.write(text)
    return text


@kind("send with Return")
def send_with_return(person: Person) -> bool:
    text = _written(person)
    if text is None:
        return False
    QTest.keyClick(person.edit, Qt.Key.Key_Return)
    person.settle()
    return _sent(person, text)


@kind("send with the button")
def send_with_button(person: Person) -> bool:
    text = _written(person)
    if text is None:
        return False
    assert person.pane.composer.button.state is SendState.SEND
    person.click(person.pane.composer.button)
    return _sent(person, text)


@kind("type a draft")
def type_draft(person: Person) -> bool:
    before = person.edit.toPlainText()
    person.write("a draft, ")
    assert person.edit.toPlainText() == before + "a draft, "
    return True


@kind("clear the composer")
def clear_composer(person: Person) -> bool:
    if not person.edit.toPlainText():
        return False
    person.discard_draft(person.edit.toPlainText())
    person.edit.setFocus()
    QTest.keyClick(person.edit, Qt.Key.Key_A, CTRL)
    QTest.keyClick(person.edit, Qt.Key.Key_Backspace)
    assert person.edit.toPlainText() == ""
    return True


@kind("undo typing")
def undo_typing(person: Person) -> bool:
    if not person.edit.document().isUndoAvailable():
        return False
    before = person.edit.toPlainText()
    person.discard_draft(before)
    person.edit.setFocus()
    person.press(Qt.Key.Key_Z, CTRL)
    return person.edit.toPlainText() != before


@kind("queue a message")
def queue_message(person: Person) -> bool:
    if person.edit.toPlainText() or not (person.answers or regenerate_with_key(person)):
        return False
    text = person.some_text()
    person.write(text)
    still_answers = person.answers
    QTest.keyClick(person.edit, Qt.Key.Key_Return)
    if not still_answers:
        person.settle()
        return _sent(person, text)
    person.entrust(text)
    assert person.edit.toPlainText() == ""
    waits = person.core.chat.queued(person.current).text
    assert text in waits or text in person.texts
    return True


@kind("take a queued message back")
def withdraw(person: Person) -> bool:
    queued = person.pane.queued
    if not queued.isVisible() and not (queue_message(person) and queued.isVisible()):
        return False
    text = person.core.chat.queued(person.current).text
    QTest.mouseClick(queued.edit_button, LEFT)
    if person.core.chat.queued(person.current).text:
        return False
    assert text in person.edit.toPlainText() or text in person.texts
    person.settle()
    return True
