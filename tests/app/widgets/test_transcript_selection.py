from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QDrag, QKeySequence
from PySide6.QtTest import QTest

from app.widgets.transcript.rows.row import RowAction
from tests.fakes.transcript_samples import CODE, GUIDE, answer, conversation, question
from tests.fakes.transcript_stage import LEFT, WIDTH, TranscriptStage

FAR = QPoint(790, 590)
STYLED = "Some **bold** and `code` text"


def test_whole_block_is_copied_as_markdown(transcript: TranscriptStage) -> None:
    transcript.show([answer(0, f"{STYLED}\n\nSecond")])
    transcript.drag(QPoint(41, 30), QPoint(700, 30))
    assert transcript.copied() == STYLED


def test_selected_text_is_dragged_out_as_it_is_copied(
    transcript: TranscriptStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    dropped: list[str] = []

    def drop(drag: QDrag, _action: Qt.DropAction) -> None:
        dropped.append(drag.mimeData().text())

    monkeypatch.setattr(QDrag, "exec", drop)
    transcript.show([answer(0, f"{STYLED}\n\nSecond")])
    transcript.drag(QPoint(41, 30), QPoint(700, 30))
    assert dropped == []
    transcript.drag(QPoint(80, 30), QPoint(90, 60))
    assert dropped == [STYLED]
    assert transcript.copied() == STYLED, "the text stays selected"
    QTest.mouseClick(transcript.view.viewport(), LEFT, pos=QPoint(80, 30))
    assert transcript.view.selection.is_empty
    transcript.drag(QPoint(80, 30), QPoint(120, 30))
    assert len(dropped) == 1
    assert not transcript.view.selection.is_empty, "without a selection a drag selects text"


def test_part_of_a_block_is_copied_without_markup(transcript: TranscriptStage) -> None:
    transcript.show([answer(0, STYLED)])
    transcript.drag(QPoint(700, 30), QPoint(60, 30))
    assert transcript.copied() in STYLED.replace("*", "").replace("`", "")
    assert len(transcript.clipboard()) > 15


def test_selection_across_messages_is_copied_as_markdown(transcript: TranscriptStage) -> None:
    transcript.show(
        [answer(0, "First"), answer(1, f"{STYLED}\n\n- item\n\n{CODE}"), answer(2, "Last")]
    )
    transcript.drag(QPoint(41, 30), FAR)
    assert transcript.copied() == f"First\n\n{STYLED}\n\n- item\n\n{CODE}\n\nLast"


def test_copy_keeps_blank_lines_between_blocks(transcript: TranscriptStage) -> None:
    text = "One\n\n\n\nTwo\n- a\n- b\n\n> q"
    transcript.show([answer(0, text)])
    transcript.drag(QPoint(41, 30), FAR)
    assert transcript.copied() == text


def test_copy_of_a_question_keeps_its_line_ends(transcript: TranscriptStage) -> None:
    transcript.show([question(0, "one\n\nthree  \nfour")])
    transcript.view.selection.select_all()
    assert transcript.copied() == "one\n\nthree  \nfour"


def test_question_with_a_list_shows_its_lines_and_indentation_as_typed(
    transcript: TranscriptStage,
) -> None:
    text = "line one\nline two\n  indented three\n\n* star item"
    transcript.show([question(0, text)])
    transcript.drag(QPoint(41, 30), QPoint(790, 90))
    assert transcript.copied() == "line one\nline two\n  indented three"
    transcript.show([answer(0, text)])
    transcript.drag(QPoint(60, 30), QPoint(790, 75))
    assert transcript.copied().endswith("e one\nline two\nindented three"), "Markdown has no indent"


def test_copied_part_of_a_long_poem_has_each_line_end_once(transcript: TranscriptStage) -> None:
    lines = [f"{number} {'many_words ' * 6}".strip() for number in range(100, 170)]
    transcript.view.resize(WIDTH, 2000)
    transcript.show([answer(0, "\n".join(lines))])
    transcript.drag(QPoint(60, 30), QPoint(WIDTH - 10, 1990))
    first, *rest = transcript.copied().split("\n")
    assert lines[0].endswith(first)
    assert rest == lines[1:]


def test_select_all_and_copy_gives_every_message(transcript: TranscriptStage) -> None:
    items = conversation(20)
    transcript.view.show_conversation(items)
    QTest.keySequence(transcript.view, QKeySequence(QKeySequence.StandardKey.SelectAll))
    QTest.keySequence(transcript.view, QKeySequence(QKeySequence.StandardKey.Copy))
    assert transcript.clipboard() == "\n\n".join(item.text for item in items)


@pytest.mark.parametrize("text", ["<b>no html</b> &amp;", "1 < 2 <!-- x -->"])
def test_html_in_a_message_is_plain_text(transcript: TranscriptStage, text: str) -> None:
    transcript.show([question(0, text)])
    transcript.view.selection.select_all()
    assert transcript.copied() == text


def test_double_click_after_emoji_selects_the_whole_word(transcript: TranscriptStage) -> None:
    transcript.show([answer(0, "😀😀😀 word **bold** 😀\n\nnext")])
    selected: set[str] = set()
    for x in range(44, 240, 6):
        transcript.double_click(QPoint(x, 36))
        selected.add(transcript.copied())
    assert {"word", "bold"} <= selected
    assert not {"old", "bol", "wor", "ord"} & selected


def test_double_click_selects_a_word(transcript: TranscriptStage) -> None:
    transcript.show([answer(0, "incomprehensibilities are words")])
    transcript.double_click(QPoint(80, 36))
    assert transcript.copied() == "incomprehensibilities"


def test_shift_click_extends_the_selection(transcript: TranscriptStage) -> None:
    transcript.show([answer(0, "First\n\nSecond\n\nThird")])
    viewport = transcript.view.viewport()
    QTest.mouseClick(viewport, LEFT, pos=QPoint(41, 36))
    shift = Qt.KeyboardModifier.ShiftModifier
    QTest.mouseClick(viewport, LEFT, shift, QPoint(700, 72))
    assert transcript.copied() == "First\n\nSecond"


def test_click_clears_the_selection(transcript: TranscriptStage) -> None:
    changes: list[bool] = []
    selection = transcript.view.selection
    selection.changed.connect(lambda: changes.append(not selection.is_empty))
    transcript.show([answer(0, GUIDE)])
    transcript.view.selection.select_all()
    assert not transcript.view.selection.is_empty
    QTest.mouseClick(transcript.view.viewport(), LEFT, pos=QPoint(300, 300))
    assert transcript.view.selection.is_empty
    assert changes == [True, False]


def test_drag_below_the_view_scrolls_until_release(transcript: TranscriptStage) -> None:
    transcript.show(conversation(3))
    transcript.view.verticalScrollBar().setValue(0)
    viewport = transcript.view.viewport()
    QTest.mousePress(viewport, LEFT, pos=QPoint(300, 300))
    QTest.mouseMove(viewport, QPoint(300, 500))
    QTest.mouseMove(viewport, QPoint(300, 700))
    transcript.qtbot.waitUntil(lambda: transcript.top > 100)
    QTest.mouseRelease(viewport, LEFT, pos=QPoint(300, 500))
    stopped = transcript.top
    transcript.qtbot.wait(100)
    assert transcript.top == stopped


def test_copied_table_row_has_its_cells_separated_by_tabs(transcript: TranscriptStage) -> None:
    transcript.show([answer(0, "| aa | bb |\n|--|--|\n| cc | dd |\n\nafter")])
    transcript.drag(QPoint(41, 40), QPoint(700, 140))
    assert transcript.copied().startswith("| aa | bb |\n|--|--|\n| cc | dd |")
    transcript.view.selection.select(None)  # else the drag would move the selected text
    transcript.drag(QPoint(41, 80), QPoint(700, 80))
    assert transcript.copied() == "cc\tdd"
    transcript.show([answer(0, "| aa | bb |\n|--|--|\n| cc<br>ee | dd |\n\nafter")])
    transcript.drag(QPoint(41, 80), QPoint(700, 108))
    assert transcript.copied() == "cc ee\tdd", "a line of the copy is a row of the table"


def test_long_table_is_copied_as_markdown_if_it_is_selected_as_a_whole(
    transcript: TranscriptStage,
) -> None:
    rows = "\n".join(f"| c{number} | $x_{{{number}}}$ |" for number in range(23))
    table = f"| a | b |\n|--|--|\n{rows}"
    transcript.view.resize(800, 1_300)
    transcript.show([answer(0, f"**before** it\n\n{table}\n\n`after`")])
    bottom = QPoint(700, transcript.find(RowAction.REGENERATE).y() - 30)
    transcript.drag(QPoint(50, 30), bottom)
    assert f"re it\n\n{table}\n\n`after`" in transcript.copied()
    # A part of the table has tabs between the cells, also if it ends between two rows of the layout.
    transcript.drag(QPoint(50, 30), bottom - QPoint(0, 100))
    assert "a\tb\nc0\t$x_{0}$\n" in transcript.copied()
    assert "|" not in transcript.copied()
