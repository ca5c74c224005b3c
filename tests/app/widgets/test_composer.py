from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from time import process_time

import pytest
from PySide6.QtCore import QMimeData, QPoint, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QInputMethodEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from app.conversation.tree import Setup
from app.settings import Appearance
from app.theme.palette import Theme
from app.theme.tokens import Type
from app.widgets.composer import Composer
from app.widgets.send_button import SendState
from app.widgets.transcript.rows.picture_shelf import PictureShelf
from app.widgets.transcript.view import NO_PICTURES
from tests.fakes.fake_engine import FACTS
from tests.fakes.stage import CTRL, SHIFT, Key


@pytest.fixture
def composer(qtbot: QtBot, qapp: QApplication) -> Iterator[Composer]:
    theme = Theme(qapp, Appearance.LIGHT)
    window = QWidget()
    qtbot.addWidget(window)
    composer = Composer(theme, PictureShelf(NO_PICTURES, window), window)
    window.resize(700, 400)
    composer.resize(700, composer.sizeHint().height())
    window.show()
    composer.edit.setFocus()
    yield composer
    theme.deleteLater()


def sent(composer: Composer) -> list[str]:
    texts: list[str] = []
    composer.send_requested.connect(texts.append)
    return texts


def test_return_sends_and_shift_return_starts_a_new_line(composer: Composer) -> None:
    texts = sent(composer)
    QTest.keyClicks(composer.edit, "one")
    QTest.keyClick(composer.edit, Key.Key_Return, SHIFT)
    QTest.keyClicks(composer.edit, "two")
    assert texts == []
    QTest.keyClick(composer.edit, Key.Key_Return)
    assert texts == ["one\ntwo"]


def test_keys_of_the_disabled_continue_command_change_nothing(composer: Composer) -> None:
    texts = sent(composer)
    composer.set_text("one")
    QTest.keyClick(composer.edit, Key.Key_Return, CTRL | SHIFT)
    assert composer.text == "one"
    assert texts == []


def test_white_space_is_not_sent(composer: Composer) -> None:
    texts = sent(composer)
    QTest.keyClick(composer.edit, Key.Key_Return)
    composer.set_text(" \n\t ")
    QTest.keyClick(composer.edit, Key.Key_Return)
    composer.button.click()
    assert texts == []
    assert not composer.button.isEnabled()


def test_return_while_an_input_method_composes_does_not_send(composer: Composer) -> None:
    texts = sent(composer)
    QTest.keyClicks(composer.edit, "a")
    QApplication.sendEvent(composer.edit, QInputMethodEvent("ni", []))
    QTest.keyClick(composer.edit, Key.Key_Return)
    assert texts == []
    commit = QInputMethodEvent("", [])
    commit.setCommitString("你")
    QApplication.sendEvent(composer.edit, commit)
    QTest.keyClick(composer.edit, Key.Key_Return)
    assert texts == ["a你"]


def test_escape_while_an_input_method_composes_is_not_emitted(composer: Composer) -> None:
    escapes: list[int] = []
    composer.escaped.connect(lambda: escapes.append(1))
    QApplication.sendEvent(composer.edit, QInputMethodEvent("ni", []))
    QTest.keyClick(composer.edit, Key.Key_Escape)
    assert escapes == []
    QApplication.sendEvent(composer.edit, QInputMethodEvent("", []))
    QTest.keyClick(composer.edit, Key.Key_Escape)
    assert escapes == [1]


def test_while_answering_return_sends_and_the_button_stops(composer: Composer) -> None:
    texts = sent(composer)
    composer.set_answering(True, "1 ahead")
    QTest.keyClicks(composer.edit, "next")
    QTest.keyClick(composer.edit, Key.Key_Return)
    assert texts == ["next"], "the composer did not emit the message to be queued"
    assert composer.text == "next"
    assert composer.button.state is SendState.STOP
    composer.set_answering(False)
    assert composer.button.state is SendState.SEND
    assert composer.button.isEnabled()


def test_composer_grows_up_to_ten_lines(composer: Composer) -> None:
    heights: list[float] = []
    for lines in (1, 2, 10, 11, 500):
        composer.set_text("\n".join(["x"] * lines))
        heights.append(composer.edit.height() / Type.COMPOSER.line)
    assert heights == [1, 2, 10, 10, 10]
    composer.set_text("")
    assert composer.edit.height() == Type.COMPOSER.line


def test_composer_grows_with_wrapped_lines(composer: Composer) -> None:
    before = composer.edit.height()
    composer.set_text("many words " * 40)
    assert composer.edit.height() > 2 * before


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "def f(x):\n    return x * 2  # doubled\n" * 52_000,
        "x" * 2_000_000,
        "word " * 400_000,
        "你好世界" * 500_000,
    ],
    ids=["lines", "one word", "one line", "Chinese"],
)
def test_two_megabytes_are_pasted_as_plain_text_in_proportional_time(
    composer: Composer, text: str
) -> None:
    paste(composer, "warm up")
    tenth_s = paste(composer, text[: len(text) // 10])
    whole_s = paste(composer, text)
    assert composer.text == text
    began = process_time()
    QTest.keyClicks(composer.edit, "x")
    key_s = process_time() - began
    assert composer.text == f"{text}x"
    composer.edit.selectAll()
    composer.edit.copy()
    assert QApplication.clipboard().text() == f"{text}x"
    QApplication.clipboard().clear()
    # Ten times the text takes about ten times as long; far less than a hundred times.
    assert whole_s < 40 * tenth_s
    assert key_s < whole_s


def paste(composer: Composer, text: str) -> float:
    """Paste rich text in place of the whole text. Return the processor time in seconds."""
    mime = QMimeData()
    mime.setText(text)
    mime.setHtml("<b>rich</b>")
    composer.edit.selectAll()
    began = process_time()
    composer.edit.insertFromMimeData(mime)
    return process_time() - began


def test_pasted_files_are_reported_and_not_inserted(composer: Composer) -> None:
    added: list[object] = []
    composer.files_added.connect(added.append)
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile("/tmp/report.pdf")])
    assert composer.edit.canInsertFromMimeData(mime)
    composer.edit.insertFromMimeData(mime)
    assert added == [(Path("/tmp/report.pdf"),)]
    assert composer.text == ""


def test_dragged_files_are_left_to_the_window(composer: Composer) -> None:
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile("/tmp/report.pdf")])
    drag = QDragEnterEvent(
        QPoint(4, 4),
        Qt.DropAction.CopyAction,
        mime,
        Qt.MouseButton.LeftButton,
        Qt.KeyboardModifier.NoModifier,
    )
    composer.edit.dragEnterEvent(drag)
    assert not drag.isAccepted()


def test_up_key_edits_the_last_message_only_if_the_composer_is_empty(composer: Composer) -> None:
    asked: list[int] = []
    composer.edit_last_requested.connect(lambda: asked.append(1))
    QTest.keyClicks(composer.edit, "a")
    QTest.keyClick(composer.edit, Key.Key_Up)
    assert asked == []
    composer.set_text("")
    QTest.keyClick(composer.edit, Key.Key_Up)
    assert asked == [1]


def test_thinking_menu_is_shown_only_if_the_model_can_think(composer: Composer) -> None:
    chosen: list[object] = []
    composer.setup_changed.connect(chosen.append)
    composer.thinking.show_setup(Setup(), replace(FACTS, has_thinking=False))
    assert not composer.thinking.isVisible()
    composer.thinking.show_setup(Setup(thinking=True, seed=7), FACTS)
    assert composer.thinking.isVisible()
    assert composer.thinking.text() == "Thinking: On"
    for action in composer.thinking.menu().actions()[:3]:
        action.trigger()
    assert chosen == [Setup(thinking=value, seed=7) for value in (None, True, False)]


def test_keep_thoughts_is_offered_only_if_the_model_supports_it(composer: Composer) -> None:
    chosen: list[object] = []
    composer.setup_changed.connect(chosen.append)
    *_choices, keep, note = composer.thinking.menu().actions()
    composer.thinking.show_setup(Setup(), replace(FACTS, can_keep_thinking=False))
    assert (keep.isVisible(), note.isVisible()) == (False, False)
    composer.thinking.show_setup(Setup(), FACTS)
    assert (keep.isVisible(), note.isVisible()) == (True, True)
    assert (keep.text(), keep.isChecked()) == ("Keep Earlier Thinking", False)
    assert not note.isEnabled(), "the explanation can be chosen"
    keep.trigger()
    assert chosen == [Setup(keep_thinking=True)]


def test_box_of_a_chat_stays_in_place_without_a_caption(composer: Composer) -> None:
    composer.set_caption("Nothing leaves it.", keeps_line=True)
    height = composer.sizeHint().height()
    composer.set_caption("", keeps_line=True)
    assert composer.sizeHint().height() == height
    assert composer.caption == ""
    composer.set_caption("")
    assert composer.sizeHint().height() < height
