"""Tests with unusable input: a newer database, an image, a failing template, a long prompt."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest

from app.controllers.desk import KEPT
from app.settings import ModelDefaults
from app.widgets.commands import CommandId
from engine.errors import ContextFullError, TemplateError, TextTooLongError
from tests.app.conftest import MakeStage
from tests.fakes.rig import FakeCatalog, card
from tests.fakes.stage import Key, Stage


def _set_version(path: Path, number: int) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"PRAGMA user_version = {number}")
        database.commit()


def test_database_of_newer_version_shows_notice_and_is_not_changed(
    tmp_path: Path, make_stage: MakeStage
) -> None:
    path = tmp_path / "conversations.db"
    _set_version(path, 999)
    before = path.read_bytes()
    stage = make_stage()
    stage.wait_until(stage.pane.notice.isVisible)
    assert "newer Rejoinder" in stage.pane.notice.text
    assert not stage.composer.isEnabled()
    assert not stage.window.toast.isVisible()
    QTest.mouseClick(stage.pane.notice.button, Qt.MouseButton.LeftButton)
    stage.wait_until(stage.pane.notice.isVisible)
    stage.wait_until(lambda: stage.pane.notice.button.height() > 0)
    assert path.read_bytes() == before
    _set_version(path, 0)
    QTest.mouseClick(stage.pane.notice.button, Qt.MouseButton.LeftButton)
    stage.wait_until(stage.composer.isEnabled)
    assert stage.pane.notice.isHidden()
    stage.edit.setFocus()
    stage.chat("One", "1")
    assert [one.title for one in stage.stored(lambda store: store.summaries())] == ["One"]


def test_two_megabyte_message_is_sent_unchanged(stage: Stage) -> None:
    text = "x" * 2_000_000
    stage.composer.set_text(text)
    QTest.keyClick(stage.edit, Key.Key_Return)
    stage.settle()
    assert stage.engine.submitted[0].messages[0].content == text
    stage.answer("ok")
    assert stage.texts == [text, "ok"]


def test_template_error_shows_notice_and_keeps_the_text(stage: Stage) -> None:
    stage.engine.hold_start = True
    stage.send("Hello")
    stage.engine.fail(TemplateError("Roles must alternate.").problem)
    stage.settle()
    assert "chat template refused" in stage.pane.notice.text
    assert not stage.pane.notice.button.isVisible()
    assert stage.edit.toPlainText() == "Hello"
    stage.pane.notice.close_button.click()
    assert not stage.pane.notice.isVisible()


@pytest.mark.slow
def test_chat_that_is_too_long_has_a_caption_and_takes_no_message(
    make_stage: MakeStage,
) -> None:
    short = card("Short-1B", context_len=1_000)
    stage = make_stage(catalog=FakeCatalog(cards=(card(), short)))
    stage.engine.facts = replace(stage.engine.facts, context_len=1_000)
    stage.core.models.choose(short.path)
    stage.settle()
    stage.chat("Why?", "Because of it. " * 400)
    stage.wait_until(lambda: "too long" in stage.composer.caption)
    before = stage.composer.caption
    assert before.startswith("This chat is too long for Short 1B: 1,5")
    stage.edit.setPlainText("Go on, please.")
    stage.pane.draft.flush()
    assert stage.composer.caption == before
    QTest.keyClick(stage.edit, Key.Key_Return)
    assert len(stage.engine.submitted) == 1, (
        "a full chat takes no message, before it is counted again"
    )
    stage.wait_until(lambda: stage.composer.caption != before)
    assert stage.composer.caption.startswith("This chat is too long for Short 1B: 1,5")
    QTest.keyClick(stage.edit, Key.Key_Return)
    assert len(stage.engine.submitted) == 1
    assert stage.edit.toPlainText() == "Go on, please."
    notice = stage.pane.notice
    assert "reads at most 1,000." in notice.text
    assert _tokens(notice.text) == _tokens(stage.composer.caption)
    stage.edit.setPlainText("Go on, please, as long as you can.")
    stage.pane.draft.flush()
    num_counts = len(stage.engine.counts)
    stage.wait_until(lambda: len(stage.engine.counts) > num_counts)
    stage.settle()
    assert notice.isVisible()
    assert _tokens(notice.text) == _tokens(stage.composer.caption)
    stage.edit.setPlainText("Go on, please.")
    stage.pane.draft.flush()
    assert notice.button.text() == "Move Message to a New Chat"
    stage.wait_until(notice.other_button.isVisible)
    stage.engine.facts = replace(stage.engine.facts, context_len=32_768)
    QTest.mouseClick(notice.other_button, Qt.MouseButton.LeftButton)
    stage.settle()
    assert stage.rig.models.status.path == str(card().path)
    QTest.keyClick(stage.edit, Key.Key_Return)
    assert len(stage.engine.submitted) == 2, "the longer model takes the message"


def _tokens(sentences: str) -> str:
    """Return the number of tokens of a prompt that is too long, as a notice or a caption has it."""
    found = re.search(r"(?:needs|4-bit:|1B:) ([0-9,]+)", sentences)
    assert found is not None, sentences
    return found[1]


@pytest.mark.slow
def test_pasted_text_that_is_too_long_is_counted_before_it_is_sent(make_stage: MakeStage) -> None:
    longer = card("Longer-4B", context_len=262_144)
    stage = make_stage(catalog=FakeCatalog(cards=(card(), longer)))
    QGuiApplication.clipboard().setText("word " * 40_000)
    stage.edit.paste()
    stage.wait_until(lambda: "too long" in stage.composer.caption)
    assert stage.composer.caption == (
        "This text is too long for Tiny 9B 4-bit: 50,004 of 32,768 tokens."
    )
    QTest.keyClick(stage.edit, Key.Key_Return)
    assert stage.pane.notice.text.startswith("This text is too long for the model.")
    stage.edit.setPlainText("")
    assert stage.engine.submitted == []
    assert not stage.pane.notice.isVisible()
    assert "too long" not in stage.composer.caption
    stage.edit.paste()
    stage.engine.hold_start = True
    QTest.keyClick(stage.edit, Key.Key_Return)
    stage.engine.fail(TextTooLongError("It needs 50,004 tokens.", 50_004).problem)
    stage.wait_until(stage.pane.notice.other_button.isVisible)
    assert stage.edit.toPlainText().startswith("word word")
    assert stage.pane.notice.text.endswith("Longer 4B can read this text (262,144 tokens).")
    assert stage.pane.notice.other_button.text() == "Use Longer 4B"
    stage.engine.facts = replace(stage.engine.facts, context_len=262_144)
    QTest.mouseClick(stage.pane.notice.other_button, Qt.MouseButton.LeftButton)
    stage.wait_until(lambda: stage.rig.models.status.path == str(longer.path))
    stage.wait_until(lambda: stage.engine.counts[-1] is not stage.engine.counts[0])
    stage.settle()
    assert "too long" not in stage.composer.caption


def test_text_that_is_too_long_has_no_offer_without_a_longer_model(stage: Stage) -> None:
    stage.engine.hold_start = True
    stage.send("Hello")
    stage.engine.fail(TextTooLongError("It needs 50,004 tokens.", 50_004).problem)
    stage.settle()
    assert "Shorten it" in stage.pane.notice.text
    assert not stage.pane.notice.button.isVisible()
    assert not stage.pane.notice.other_button.isVisible()


def test_chat_that_is_too_long_offers_the_model_that_can_read_it(make_stage: MakeStage) -> None:
    huge = card("Huge-400B", context_len=262_144, num_parameters=400_000_000_000)
    limited = card("Limited-70B", context_len=262_144, num_parameters=70_000_000_000)
    alike = card("Alike-30B", context_len=36_000, num_parameters=30_000_000_000)
    longer = card("Longer-4B", context_len=131_072, num_parameters=4_000_000_000)
    catalog = FakeCatalog(cards=(card(), huge, limited, alike, longer), too_large={huge.path})
    stage = make_stage(catalog=catalog)
    stage.rig.models.choose(card().path)
    stage.settle()
    stage.core.preferences.set_defaults(str(limited.path), ModelDefaults(context_len=32_768))
    stage.chat("Hello", "Hi")
    stage.engine.hold_start = True
    stage.send("Too much")
    stage.engine.fail(ContextFullError("33,012 tokens; the model takes 32,768.", 33_012).problem)
    notice = stage.pane.notice
    stage.wait_until(notice.isVisible)
    stage.wait_until(notice.other_button.isVisible)
    assert notice.button.text() == "Move Message to a New Chat"
    assert notice.other_button.text() == "Use Longer 4B"
    assert notice.text.endswith("Longer 4B can read this chat (131,072 tokens).")
    QTest.mouseClick(notice.other_button, Qt.MouseButton.LeftButton)
    assert stage.rig.models.status.path == str(longer.path)
    assert stage.edit.toPlainText() == "Too much"


def test_notice_of_a_refused_message_goes_when_the_composer_is_emptied(stage: Stage) -> None:
    stage.engine.hold_start = True
    stage.send("Hello")
    stage.engine.fail(TextTooLongError("It needs 50,004 tokens.").problem)
    stage.settle()
    stage.edit.setPlainText("Hell")
    assert stage.pane.notice.isVisible()
    stage.edit.setPlainText("")
    assert not stage.pane.notice.isVisible()


def test_notice_of_another_problem_stays_when_the_composer_is_emptied(stage: Stage) -> None:
    stage.type("Hello")
    stage.pane.notice.say(ContextFullError("33,012 tokens.").problem)
    stage.edit.setPlainText("")
    assert stage.pane.notice.isVisible()


def test_refusal_in_a_hidden_chat_shows_toast_and_keeps_its_text(stage: Stage) -> None:
    stage.chat("Long chat", "Yes")
    stage.engine.hold_start = True
    stage.send("Too much")
    stage.run(CommandId.NEW_CHAT)
    stage.engine.fail(ContextFullError("33,012 tokens; the model takes 32,768.").problem)
    stage.settle()
    assert "“Long chat” was not sent" in stage.window.toast.text
    stage.click_row("Long chat")
    assert stage.edit.toPlainText() == "Too much"


def test_refusal_in_a_chat_that_left_the_memory_is_reported(stage: Stage) -> None:
    stage.chat("Long chat", "Yes")
    stage.engine.hold_start = True
    stage.send("Too much")
    for number in range(KEPT + 2):
        stage.run(CommandId.NEW_CHAT)
        stage.type(f"Draft {number}")
    stage.engine.fail(ContextFullError("33,012 tokens; the model takes 32,768.").problem)
    stage.settle()
    assert "“Long chat” was not sent" in stage.window.toast.text


def test_notice_is_hidden_when_another_chat_is_shown(stage: Stage) -> None:
    stage.chat("Long chat", "Yes")
    stage.engine.hold_start = True
    stage.send("Too much")
    stage.engine.fail(ContextFullError("33,012 tokens; the model takes 32,768.").problem)
    stage.settle()
    assert stage.pane.notice.isVisible()
    stage.run(CommandId.NEW_CHAT)
    assert not stage.pane.notice.isVisible()
