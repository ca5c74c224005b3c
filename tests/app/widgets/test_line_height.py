"""Tests that wrapped labels and the composer have the line heights of the type scale (Type)."""

from __future__ import annotations

from itertools import pairwise

import pytest
from PySide6.QtCore import QPoint
from PySide6.QtGui import QTextCursor
from PySide6.QtTest import QTest

from app.theme.tokens import Type
from app.widgets.line_height import Sentences
from tests.fakes.stage import Key, Stage

LONG = "A sentence that says something, and goes on to say it once more. " * 6


@pytest.mark.parametrize("kind", ["ui", "small", "caption"])
def test_wrapped_label_height_is_a_multiple_of_its_line_height(stage: Stage, kind: str) -> None:
    line = {"ui": Type.UI, "small": Type.SMALL, "caption": Type.CAPTION}[kind].line
    label = Sentences(stage.window, kind, LONG)
    label.ensurePolished()
    heights = {label.heightForWidth(width) for width in (300, 500, 5000)}
    assert len(heights) == 3
    assert all(height % line == 0 for height in heights)


def test_label_shows_html_as_plain_text(stage: Stage) -> None:
    label = Sentences(stage.window, text="1 < 2 & <b>bold</b>\nnext")
    plain = Sentences(stage.window, text="1")
    assert label.text() == "1 < 2 & <b>bold</b>\nnext"
    assert label.heightForWidth(1000) == 2 * plain.heightForWidth(1000)
    label.setText("")
    assert label.text() == ""


def test_composer_lines_have_equal_height_and_map_to_the_mouse_position(stage: Stage) -> None:
    edit, line = stage.edit, Type.COMPOSER.line
    edit.setPlainText(f"{LONG}\n\nlast")
    edit.moveCursor(QTextCursor.MoveOperation.Start)
    tops: list[int] = []
    for _ in range(5):
        tops.append(edit.cursorRect().top())
        at = edit.cursorForPosition(QPoint(0, tops[-1] + line // 2))
        assert at.position() == edit.textCursor().position()
        QTest.keyClick(edit, Key.Key_Down)
    assert [after - before for before, after in pairwise(tops)] == [line] * 4
    assert edit.textCursor().atEnd() or edit.height() % line == 0
