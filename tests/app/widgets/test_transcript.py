from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QColor
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.theme.palette import Theme
from app.viewmodels.blocks import LINE_BREAK, TextMark, TextSpan
from app.viewmodels.lexer_shelf import LexerShelf
from app.widgets.transcript.layout.stack import KEPT
from app.widgets.transcript.messages.body import MAX_ROW_TEXT, split_spans
from app.widgets.transcript.rows.code_lines import CodeLines
from app.widgets.transcript.rows.layout_cache import MAX_LAYOUTS
from app.widgets.transcript.view import TranscriptView
from tests.fakes.transcript_samples import GUIDE, answer, conversation, question, restored
from tests.fakes.transcript_stage import HEIGHT, LEFT, TranscriptStage


def test_long_conversation_lays_out_only_visible_messages(transcript: TranscriptStage) -> None:
    transcript.view.show_conversation(conversation(1000))
    statistics = transcript.view.statistics()
    assert statistics.num_messages == 2000
    assert statistics.num_settled < 10
    assert statistics.num_layouts < 100


@pytest.mark.slow
def test_scrolling_keeps_a_limited_number_of_layouts(transcript: TranscriptStage) -> None:
    transcript.show(conversation(30))
    for value in range(0, transcript.end, HEIGHT):
        transcript.view.verticalScrollBar().setValue(value)
        transcript.view.viewport().repaint()
    assert transcript.view.statistics().num_layouts == MAX_LAYOUTS


def test_message_far_from_the_view_keeps_only_its_height(transcript: TranscriptStage) -> None:
    view = transcript.view
    transcript.show(conversation(100, "Some text\n\n- and a list"))
    assert view.statistics().num_settled == 200
    assert view.statistics().num_parsed < 2 * KEPT
    end, top = transcript.end, transcript.end // 2
    view.verticalScrollBar().setValue(top)
    before = transcript.picture()
    for value in (0, transcript.end, top):
        view.verticalScrollBar().setValue(value)
        transcript.settle()
    assert transcript.picture() == before
    assert transcript.end == end
    assert view.statistics().num_parsed <= 2 * KEPT + 10


def test_selection_is_copied_in_full_when_layouts_were_dropped(transcript: TranscriptStage) -> None:
    transcript.show(conversation(60, "First **block**\n\nSecond"))
    view = transcript.view
    view.verticalScrollBar().setValue(0)
    QTest.mouseClick(view.viewport(), LEFT, pos=QPoint(700, 48))
    view.jump_to_latest()
    transcript.settle()
    shift = Qt.KeyboardModifier.ShiftModifier
    QTest.mouseClick(view.viewport(), LEFT, shift, QPoint(700, 500))
    view.selection.copy()
    assert transcript.clipboard().count("First **block**") == 60


def test_empty_conversation_has_no_scroll_position_and_no_error(
    transcript: TranscriptStage,
) -> None:
    transcript.show([])
    transcript.view.selection.select_all()
    transcript.view.selection.copy()
    transcript.view.jump_to_latest()
    assert transcript.view.scroll_position() is None
    assert transcript.end == 0


def test_zoom_scales_text_and_column(transcript: TranscriptStage) -> None:
    transcript.show(conversation(2))
    normal = transcript.end
    transcript.view.set_zoom(2.0)
    transcript.settle()
    assert transcript.end > 2 * normal
    transcript.view.set_zoom(1.0)
    transcript.settle()
    assert transcript.end == normal


def test_zoom_keeps_the_first_visible_message(transcript: TranscriptStage) -> None:
    transcript.show(conversation(8))
    transcript.view.verticalScrollBar().setValue(transcript.end // 2)
    before = transcript.view.scroll_position()
    transcript.view.set_zoom(1.5)
    transcript.settle()
    after = transcript.view.scroll_position()
    assert before is not None
    assert after is not None
    assert after.key == before.key


def test_only_the_newest_answer_keeps_its_state_line(
    transcript: TranscriptStage, theme: Theme
) -> None:
    def num_state_lines() -> int:
        image = transcript.picture()
        ink = QColor(theme.colors.instant.ink)
        rows = [
            any(image.pixelColor(x, y) == ink for x in range(40, 200))
            for y in range(image.height())
        ]
        return sum(rows[y] and not any(rows[y - 5 : y]) for y in range(5, len(rows)))

    one, two = (replace(answer(number, "x"), phase=restored()) for number in (0, 1))
    transcript.show([question(0), one])
    assert num_state_lines() == 1
    transcript.view.set_items([question(0), one, question(1), two])
    assert num_state_lines() == 1


def test_update_of_an_unknown_message_is_ignored(transcript: TranscriptStage) -> None:
    transcript.show(conversation(1))
    transcript.view.update_item(answer(77))
    assert transcript.view.text_of("a77") == ""


@pytest.mark.parametrize("width", [200, 320, 640, 2000])
def test_view_of_any_width_stays_at_the_end_after_layout(
    transcript: TranscriptStage, width: int
) -> None:
    transcript.show(conversation(2))
    transcript.view.resize(width, HEIGHT)
    transcript.view.viewport().repaint()
    transcript.settle()
    assert transcript.top == transcript.end


def test_deleted_view_closes_its_lexer_shelf(
    qtbot: QtBot, theme: Theme, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[LexerShelf] = []
    close = LexerShelf.close

    def noted(shelf: LexerShelf) -> None:
        closed.append(shelf)
        close(shelf)

    monkeypatch.setattr(LexerShelf, "close", noted)
    view = TranscriptView(theme)
    view.show_conversation([answer(0, GUIDE)])  # the view's LexerShelf loads lexers on its thread
    view.deleteLater()
    qtbot.waitUntil(lambda: len(closed) > 0)
    assert len(closed) == 1


@given(st.text(alphabet="ab\n", max_size=80), st.integers(1, 7))
def test_code_lines_of_a_growing_text_equal_its_split_lines(text: str, step: int) -> None:
    lines = CodeLines()
    for end in range(0, len(text) + 1, step):
        lines.grow(text[:end])
    lines.grow(text)
    assert [lines.line(number) for number in range(len(lines))] == text.split("\n")
    for position in range(len(text) + 1):
        assert lines.line_at(position) == text.count("\n", 0, position)


def test_overlong_code_line_is_cut_into_pieces() -> None:
    lines = CodeLines()
    lines.grow("a\n" + "x" * 4500 + "\nb")
    assert [len(lines.line(number)) for number in range(len(lines))] == [1, 2000, 2000, 500, 1]
    assert lines.is_cut


def test_long_paragraph_is_cut_at_spaces_and_keeps_its_marks() -> None:
    spans = (
        TextSpan("word " * 1000),
        TextSpan("bold " * 1000, TextMark.BOLD),
        TextSpan("x" * 9000),
    )
    parts = split_spans(spans)
    assert all(sum(len(span.text) for span in part) <= MAX_ROW_TEXT for part in parts)
    assert "".join(span.text for part in parts for span in part) == "".join(s.text for s in spans)
    assert all("".join(span.text for span in part).endswith(" ") for part in parts[:2])
    assert {span.marks for part in parts for span in part if "bold" in span.text} == {TextMark.BOLD}


@pytest.mark.parametrize("line", ["word", "two words", "x" * 999, "x" * MAX_ROW_TEXT])
def test_long_paragraph_is_cut_between_its_lines(line: str) -> None:
    lines = [line] * (3 * MAX_ROW_TEXT // len(line))
    parts = [
        "".join(span.text for span in part)
        for part in split_spans((TextSpan(LINE_BREAK.join(lines)),))
    ]
    assert len(parts) >= 3
    assert all(len(part) <= MAX_ROW_TEXT for part in parts)
    assert [shown for part in parts for shown in part.split(LINE_BREAK)] == lines
