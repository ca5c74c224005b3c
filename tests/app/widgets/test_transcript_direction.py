"""What is read from the right stands there, and is clicked, selected and found where it is seen."""

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
LEFT_EDGE, RIGHT_EDGE = 40, 760  # of the column
FIRST_LINE = range(25, 47)


def extent(picture: QImage, color: str = LIGHT.text, ys: range = FIRST_LINE) -> tuple[int, int]:
    """From where to where there are pixels of a colour."""
    ink = QColor(color)
    xs = [x for x in range(780) if any(picture.pixelColor(x, y) == ink for y in ys)]
    return xs[0], xs[-1]


@pytest.mark.parametrize("before", ["", "# ", "1. ", "> ", "- [x] "])
def test_a_paragraph_stands_on_the_side_it_is_read_from(
    transcript: TranscriptStage, before: str
) -> None:
    transcript.show([answer(0, before + "Hello, world")])
    left, right = extent(transcript.picture())
    transcript.show([answer(0, before + HEBREW)])
    mirrored_left, mirrored_right = extent(transcript.picture())

    assert left - LEFT_EDGE == pytest.approx(RIGHT_EDGE - mirrored_right, abs=3)
    assert right < 400 < mirrored_left


def test_bars_and_numbers_stand_on_that_side_too(transcript: TranscriptStage) -> None:
    transcript.show([answer(0, f"> {HEBREW}")])
    assert extent(transcript.picture(), LIGHT.strong_line) == (RIGHT_EDGE - 3, RIGHT_EDGE - 1)
    transcript.show([answer(0, f"7. {HEBREW}")])
    assert extent(transcript.picture(), LIGHT.secondary)[0] > RIGHT_EDGE - 26


def test_a_bubble_is_as_narrow_as_its_text_and_holds_it(transcript: TranscriptStage) -> None:
    transcript.show([question(0, f"{HEBREW}\nHere is more in a longer line")])
    picture = transcript.picture()
    bubble = extent(picture, LIGHT.user_bubble)
    first = extent(picture, ys=range(38, 56))
    second = extent(picture, ys=range(62, 80))

    assert first[1] == pytest.approx(bubble[1] - 16, abs=3)
    assert second[0] == pytest.approx(bubble[0] + 16, abs=3)


def test_clicks_hit_the_letters_that_are_seen(transcript: TranscriptStage) -> None:
    transcript.show([answer(0, HEBREW)])
    transcript.view.select_all()
    left, right = extent(transcript.picture(), LIGHT.accent)
    y = FIRST_LINE[10]
    transcript.drag(QPoint(right + 1, y), QPoint((left + right) // 2 - 4, y))
    assert transcript.copied() == HEBREW[:5]
    transcript.drag(QPoint(left - 20, y), QPoint((left + right) // 2 - 4, y))
    assert transcript.copied() == HEBREW[5:]
    QTest.mouseDClick(transcript.view.viewport(), LEFT, pos=QPoint(left + 4, y))
    assert transcript.copied() == "עולם"


def test_what_is_selected_is_marked_in_the_pieces_that_are_seen(
    transcript: TranscriptStage,
) -> None:
    text = f"abc {HEBREW} xyz"
    transcript.show([answer(0, text)])
    transcript.view.finding.look_for("c שלום")
    picture, y = transcript.picture(), FIRST_LINE[0]
    marked = [
        picture.pixelColor(x, y) == QColor(LIGHT.accent) for x in range(LEFT_EDGE, RIGHT_EDGE)
    ]
    starts = sum(now and not before for before, now in zip([False, *marked], marked, strict=False))

    assert starts == 2  # the second word is read, and so stands, between them
    assert transcript.copied() == "c שלום"


def test_a_link_is_clicked_where_it_is_seen(transcript: TranscriptStage) -> None:
    transcript.show([answer(0, f"{HEBREW} [קישור](https://example.org/a)")])
    left, right = extent(transcript.picture(), LIGHT.link)
    assert RIGHT_EDGE > right > left > 400
    point = QPoint((left + right) // 2, FIRST_LINE[10])
    QTest.mouseClick(transcript.view.viewport(), LEFT, pos=point)
    assert transcript.opened == ["https://example.org/a"]
    assert transcript.view.target_at(QPointF(left - 30, point.y())) is None


def test_the_caret_follows_the_last_letter(transcript: TranscriptStage) -> None:
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


def test_a_formula_stands_in_its_place(transcript: TranscriptStage) -> None:
    transcript.show([answer(0, f"{HEBREW} $xxxxxxxxxx$ {HEBREW}")])
    transcript.view.finding.look_for("xxxxxxxxxx")
    picture = transcript.picture()
    marked = extent(picture, LIGHT.accent)
    transcript.view.finding.look_for("")
    picture = transcript.picture()
    gaps = [
        x
        for x in range(*marked)
        if all(picture.pixelColor(x, y) == QColor(LIGHT.canvas) for y in FIRST_LINE)
    ]

    assert len(gaps) < (marked[1] - marked[0]) / 2
