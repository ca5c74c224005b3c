"""What can go wrong outside, each with its sentence."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from PySide6.QtGui import QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from app.widgets.commands import CommandId
from engine.errors import ContextFullError, TemplateError
from tests.app.conftest import MakeStage
from tests.fakes.stage import CTRL, Key, Stage


def test_a_database_of_a_newer_version_is_left_alone(tmp_path: Path, make_stage: MakeStage) -> None:
    path = tmp_path / "conversations.db"
    database = sqlite3.connect(path)
    database.execute("PRAGMA user_version = 9999")
    database.commit()
    database.close()
    before = path.read_bytes()
    stage = make_stage()
    stage.wait_until(stage.pane.notice.isVisible)
    assert "newer Rejoinder" in stage.pane.notice.text
    assert not stage.composer.isEnabled()
    assert not stage.window.toast.isVisible()
    stage.close()
    assert path.read_bytes() == before


def test_a_pasted_image_says_its_sentence_in_the_window(stage: Stage) -> None:
    QApplication.clipboard().setImage(QImage(4, 4, QImage.Format.Format_RGB32))
    QTest.keyClick(stage.edit, Key.Key_V, CTRL)
    assert stage.window.toast.isVisible()
    assert stage.window.toast.text == "This model reads text only; the image was not added."
    QApplication.clipboard().clear()


def test_two_megabytes_are_sent_as_they_are(stage: Stage) -> None:
    text = "x" * 2_000_000
    stage.composer.set_text(text)
    QTest.keyClick(stage.edit, Key.Key_Return)
    stage.settle()
    assert stage.engine.submitted[0].messages[0].content == text
    stage.answer("ok")
    assert stage.texts == [text, "ok"]


def test_a_template_that_refuses_says_so_and_keeps_the_text(stage: Stage) -> None:
    stage.engine.hold_start = True
    stage.send("Hello")
    stage.engine.fail(TemplateError("Roles must alternate.").problem)
    stage.settle()
    assert "chat template refused" in stage.pane.notice.text
    assert not stage.pane.notice.button.isVisible()
    assert stage.edit.toPlainText() == "Hello"
    stage.pane.notice.close_button.click()
    assert not stage.pane.notice.isVisible()


def test_a_refusal_in_another_chat_is_said_and_its_text_kept(stage: Stage) -> None:
    stage.chat("Long chat", "Yes")
    stage.engine.hold_start = True
    stage.send("Too much")
    stage.run(CommandId.NEW_CHAT)
    stage.engine.fail(ContextFullError("33,012 tokens; the model takes 32,768.").problem)
    stage.settle()
    assert "“Long chat” was not sent" in stage.window.toast.text
    stage.click_row("Long chat")
    assert stage.edit.toPlainText() == "Too much"


def test_the_notice_goes_with_the_chat(stage: Stage) -> None:
    stage.chat("Long chat", "Yes")
    stage.engine.hold_start = True
    stage.send("Too much")
    stage.engine.fail(ContextFullError("33,012 tokens; the model takes 32,768.").problem)
    stage.settle()
    assert stage.pane.notice.isVisible()
    stage.run(CommandId.NEW_CHAT)
    assert not stage.pane.notice.isVisible()
