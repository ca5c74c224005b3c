"""Right-to-left text in the transcript: alignment, clicks, selection, formulas."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import QPoint, QPointF
from PySide6.QtGui import QColor, QImage
from PySide6.QtTest import QTest

from app.theme.tokens import LIGHT
from app.viewmodels.transcript import ItemStatus
from engine.types import Channel
from tests.fakes.transcript_samples import answer, question
from tests.fakes.transcript_stage import LEFT, TranscriptStage

HEBREW = "שלום עולם"
LEFT_EDGE, RIGHT_EDGE = 40, 760  # x of the reading column's edges
FIRST_LINE = range(25, 47)


def extent(picture: QImage, color: str = LIGHT.text, ys: range = FIRST_LINE) -> tuple[int, int]:
    """Return the smallest and the largest x with a pixel of this colour."""
    ink = QColor(color)
    xs = [x for x in range(780) if any(picture.pixelColor(x, y) == ink for y in ys)]
    return xs[0], xs[-1]


@pytest.mark.parametrize("before", ["", "# ", "1. ", "> ", "- [x] "])
def test_right_to_left_paragraph_is_aligned_right(transcript: TranscriptStage, before: str) -> None:
    transcript.show([answer(0, before + "Hello, world")])
    left, right = extent(transcript.picture())
    transcript.show([answer(0, before + HEBREW)])
    mirrored_left, mirrored_right = extent(transcript.picture())

    assert left - LEFT_EDGE == pytest.approx(RIGHT_EDGE - mirrored_right, abs=3)
    assert right < 400 < mirrored_left


def test_right_to_left_quote_and_list_have_bar_and_number_at_the_right(
    transcript: TranscriptStage,
) -> None:
    transcript.show([answer(0, f"> {HEBREW}")])
    assert extent(transcript.picture(), LIGHT.strong_line) == (RIGHT_EDGE - 3, RIGHT_EDGE - 1)
    transcript.show([answer(0, f"7. {HEBREW}")])
    assert extent(transcript.picture(), LIGHT.secondary)[0] > RIGHT_EDGE - 26


def test_bubble_fits_lines_of_both_directions(transcript: TranscriptStage) -> None:
    transcript.show([question(0, f"{HEBREW}\nHere is more in a longer line")])
    picture = transcript.picture()
    bubble = extent(picture, LIGHT.user_bubble)
    first = extent(picture, ys=range(38, 56))
    second = extent(picture, ys=range(62, 80))

    assert first[1] == pytest.approx(bubble[1] - 16, abs=3)
    assert second[0] == pytest.approx(bubble[0] + 16, abs=3)


def test_drag_over_right_to_left_text_selects_the_letters_below_it(
    transcript: TranscriptStage,
) -> None:
    transcript.show([answer(0, HEBREW)])
    transcript.view.selection.select_all()
    left, right = extent(transcript.picture(), LIGHT.accent)
    y = FIRST_LINE[10]
    transcript.view.selection.select(None)  # else the drag would move the selected text
    transcript.drag(QPoint(right + 1, y), QPoint((left + right) // 2 - 4, y))
    assert transcript.copied() == HEBREW[:5]
    transcript.drag(QPoint(left - 20, y), QPoint((left + right) // 2 - 4, y))
    assert transcript.copied() == HEBREW[5:]
    transcript.double_click(QPoint(left + 4, y))
    assert transcript.copied() == "עולם"


def test_bidirectional_selection_is_marked_in_two_pieces(
    transcript: TranscriptStage,
) -> None:
    text = f"abc {HEBREW} xyz"
    transcript.show([answer(0, text)])
    transcript.view.find_controller.look_for("c שלום")
    picture, y = transcript.picture(), FIRST_LINE[0]
    marked = [
        picture.pixelColor(x, y) == QColor(LIGHT.accent) for x in range(LEFT_EDGE, RIGHT_EDGE)
    ]
    starts = sum(now and not before for before, now in zip([False, *marked], marked, strict=False))

    # Two marked ranges, because the second Hebrew word is displayed between the selected words.
    assert starts == 2
    assert transcript.copied() == "c שלום"


def test_link_in_right_to_left_text_is_clicked_at_its_place(transcript: TranscriptStage) -> None:
    transcript.show([answer(0, f"{HEBREW} [קישור](https://example.org/a)")])
    left, right = extent(transcript.picture(), LIGHT.link)
    assert RIGHT_EDGE > right > left > 400
    point = QPoint((left + right) // 2, FIRST_LINE[10])
    QTest.mouseClick(transcript.view.viewport(), LEFT, pos=point)
    assert transcript.opened == ["https://example.org/a"]
    assert transcript.view.target_at(QPointF(left - 30, point.y())) is None


def test_caret_of_right_to_left_text_is_left_of_the_last_letter(
    transcript: TranscriptStage,
) -> None:
    transcript.show([question(0), replace(answer(0, ""), status=ItemStatus.STREAMING)])
    transcript.view.append_delta("a0", Channel.ANSWER, HEBREW)
    transcript.view.flush()
    ys = range(100, 160)
    with_caret = extent(transcript.picture(), ys=ys)
    transcript.view.finish(answer(0, HEBREW))
    transcript.settle()
    without = extent(transcript.picture(), ys=ys)

    assert with_caret[1] == without[1]
    assert without[0] - 14 < with_caret[0] < without[0] - 9


@pytest.mark.slow
def test_formula_in_right_to_left_text_is_painted_at_its_place(transcript: TranscriptStage) -> None:
    transcript.show([answer(0, f"{HEBREW} $xxxxxxxxxx$ {HEBREW}")])
    transcript.view.find_controller.look_for("xxxxxxxxxx")
    picture = transcript.picture()
    marked = extent(picture, LIGHT.accent)
    transcript.view.find_controller.look_for("")
    picture = transcript.picture()
    gaps = [
        x
        for x in range(*marked)
        if all(picture.pixelColor(x, y) == QColor(LIGHT.canvas) for y in FIRST_LINE)
    ]

    assert len(gaps) < (marked[1] - marked[0]) / 2
