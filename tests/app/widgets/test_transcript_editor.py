from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QInputMethodEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPlainTextEdit, QPushButton

from app.theme.tokens import Size, Type
from app.widgets.transcript_editor import MessageEditor
from tests.fakes.transcript_samples import answer, conversation, question
from tests.fakes.transcript_stage import LEFT, TranscriptStage

TEXT = "What is a matrix? " * 8


@pytest.fixture
def editing(transcript: TranscriptStage) -> TranscriptStage:
    items = [question(0, TEXT.strip()), answer(0, "It is")]
    transcript.show(items)
    transcript.view.update_item(replace(items[0], editing=True))
    transcript.qtbot.waitUntil(lambda: field(transcript).hasFocus())
    return transcript


def editor(stage: TranscriptStage) -> MessageEditor:
    found = stage.view.findChild(MessageEditor)
    assert isinstance(found, MessageEditor)
    return found


def field(stage: TranscriptStage) -> QPlainTextEdit:
    found = editor(stage).findChild(QPlainTextEdit)
    assert isinstance(found, QPlainTextEdit)
    return found


def button(stage: TranscriptStage, label: str) -> QPushButton:
    return next(one for one in editor(stage).findChildren(QPushButton) if one.text() == label)


def test_the_editor_holds_the_text_and_is_as_high_as_it(editing: TranscriptStage) -> None:
    assert field(editing).toPlainText() == TEXT.strip()
    num_lines = field(editing).document().firstBlock().layout().lineCount()
    assert num_lines > 1
    assert field(editing).height() >= num_lines * Type.BODY.line


def test_return_saves(editing: TranscriptStage) -> None:
    QTest.keyClicks(field(editing), "!")
    QTest.keyClick(field(editing), Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    QTest.keyClicks(field(editing), "?")
    assert editing.asked == []
    QTest.keyClick(field(editing), Qt.Key.Key_Return)
    assert editing.asked == [f"submit u0 {TEXT.strip() + '!' + chr(10) + '?'!r}"]


def test_return_belongs_to_the_input_method_while_it_composes(editing: TranscriptStage) -> None:
    QGuiApplication.sendEvent(field(editing), QInputMethodEvent("ni", []))
    QTest.keyClick(field(editing), Qt.Key.Key_Return)
    QTest.keyClick(field(editing), Qt.Key.Key_Escape)
    assert editing.asked == []
    done = QInputMethodEvent("", [])
    done.setCommitString("你")
    QGuiApplication.sendEvent(field(editing), done)
    QTest.keyClick(field(editing), Qt.Key.Key_Return)
    assert editing.asked == [f"submit u0 {TEXT.strip() + '你'!r}"]


def test_escape_cancels(editing: TranscriptStage) -> None:
    QTest.keyClick(field(editing), Qt.Key.Key_Escape)
    assert editing.asked == ["cancel u0"]


def test_the_buttons_do_the_same(editing: TranscriptStage) -> None:
    QTest.mouseClick(button(editing, "Save as new version"), LEFT)
    QTest.mouseClick(button(editing, "Cancel"), LEFT)
    assert editing.asked == [f"submit u0 {TEXT.strip()!r}", "cancel u0"]


def test_nothing_is_not_saved(editing: TranscriptStage) -> None:
    field(editing).setPlainText("  \n")
    QTest.keyClick(field(editing), Qt.Key.Key_Return)
    assert not button(editing, "Save as new version").isEnabled()
    assert editing.asked == []


def test_the_editor_grows_with_its_text_and_pushes_what_follows(editing: TranscriptStage) -> None:
    before, end = editor(editing).height(), editing.view.statistics()
    field(editing).setPlainText("\n".join("line" for _ in range(8)))
    editing.settle()
    assert editor(editing).height() > before + 50
    assert end.num_messages == 2


def test_the_editor_scrolls_with_its_message(transcript: TranscriptStage) -> None:
    items = conversation(3)
    transcript.show(items)
    transcript.view.verticalScrollBar().setValue(0)
    transcript.view.update_item(replace(items[0], editing=True))
    before = editor(transcript).y()
    transcript.view.verticalScrollBar().setValue(50)
    assert editor(transcript).y() == before - 50


def test_the_editor_goes_when_editing_ends(editing: TranscriptStage) -> None:
    editing.view.update_item(question(0, TEXT))
    editing.qtbot.waitUntil(lambda: editing.view.findChild(MessageEditor) is None)


def test_typed_text_survives_updates_of_the_item(editing: TranscriptStage) -> None:
    QTest.keyClicks(field(editing), " more")
    editing.view.set_items([replace(question(0, TEXT), editing=True), answer(0, "It is")])
    assert field(editing).toPlainText().endswith(" more")


def test_controls_have_names_and_sizes(editing: TranscriptStage) -> None:
    assert field(editing).accessibleName() == "Edit message"
    assert button(editing, "Cancel").height() >= Size.CONTROL
