"""Code blocks: wrapping long lines, and what the header says."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QGuiApplication, QImage, QWheelEvent
from PySide6.QtTest import QTest

from app.settings import Appearance
from app.theme.palette import Theme
from app.theme.tokens import LIGHT, Type
from app.viewmodels.transcript import ItemStatus
from app.widgets.transcript.rows.code_header import CodeHeading
from app.widgets.transcript.rows.row import RowAction
from engine.types import Channel
from tests.fakes.transcript_samples import CODE, answer, conversation, question
from tests.fakes.transcript_stage import GRID, LEFT, TranscriptStage

WORDS = " ".join(f"word{number}" for number in range(60))
LONG = f"```\nfirst\n{WORDS}\nlast\n```"
AWAY = QPoint(5, 590)


def see(stage: TranscriptStage) -> QImage:
    """The picture with the mouse somewhere else."""
    for point in (AWAY + QPoint(1, 1), AWAY):  # a move to where it is already moves nothing
        QTest.mouseMove(stage.view.viewport(), point)
    stage.settle()
    return stage.picture()


def push_sideways(stage: TranscriptStage, point: QPoint) -> None:
    viewport = stage.view.viewport()
    event = QWheelEvent(
        point,
        viewport.mapToGlobal(point),
        QPoint(-200, 0),
        QPoint(),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QGuiApplication.sendEvent(viewport, event)


def ys_of(picture: QImage, color: str) -> list[int]:
    """The y of the rows of pixels that have some of a colour."""
    ink = QColor(color).rgb()
    return [
        y
        for y in range(picture.height())
        if any(picture.pixelColor(x, y).rgb() == ink for x in range(picture.width()))
    ]


def test_wrap_is_offered_where_a_line_is_too_long(transcript: TranscriptStage) -> None:
    transcript.show([answer(0, CODE)])
    assert not transcript.has(RowAction.TOGGLE_WRAP)
    transcript.show([answer(0, LONG)])
    assert transcript.has(RowAction.TOGGLE_WRAP)


def test_wrapped_lines_are_seen_whole_and_what_was_clicked_stays(
    transcript: TranscriptStage,
) -> None:
    transcript.show([*conversation(3), answer(9, f"{LONG}\n\nafter"), question(9)])
    bar = transcript.view.verticalScrollBar()
    while not transcript.has(RowAction.TOGGLE_WRAP):
        bar.setValue(bar.value() - 200)
        transcript.settle()
    plain, end, button = see(transcript), transcript.end, transcript.find(RowAction.TOGGLE_WRAP)
    transcript.click(RowAction.TOGGLE_WRAP)
    wrapped = see(transcript)

    assert transcript.end - end == 4 * 20  # four lines more
    assert transcript.find(RowAction.TOGGLE_WRAP) == button
    assert wrapped != plain
    transcript.click(RowAction.TOGGLE_WRAP)
    assert see(transcript) == plain
    assert transcript.end == end


@pytest.mark.parametrize("before", ["", "> ", "- "])
def test_a_wrapped_block_is_as_high_as_one_broken_by_hand(
    transcript: TranscriptStage, before: str
) -> None:
    rest = "  " if before == "- " else before
    lines = ["```", *["中文 and 👩‍💻 " * 30, "x" * 300, "\tf(" + "'a', " * 60 + ")"], "```"]
    transcript.show([answer(9, before + f"\n{rest}".join(lines) + "\n\nafter"), *conversation(3)])
    transcript.view.verticalScrollBar().setValue(0)
    transcript.settle()
    end = transcript.end
    transcript.click(RowAction.TOGGLE_WRAP)
    transcript.settle()
    wrapped = transcript.end
    transcript.view.resize(transcript.view.width() - 200, transcript.view.height())
    transcript.settle()
    transcript.view.resize(transcript.view.width() + 200, transcript.view.height())
    transcript.settle()

    assert wrapped == transcript.end > end
    ys = ys_of(transcript.picture(), LIGHT.code_header)
    assert ys  # it is still there


def test_each_block_wraps_by_itself(transcript: TranscriptStage) -> None:
    transcript.show([answer(0, f"{LONG}\n\n{LONG}")])
    plain, viewport = see(transcript), transcript.view.viewport()
    upper = transcript.find(RowAction.TOGGLE_WRAP)
    lower = upper + QPoint(0, len(LONG.split("\n")) * 20 + 32)
    QTest.mouseClick(viewport, LEFT, pos=lower)
    second = see(transcript)
    QTest.mouseClick(viewport, LEFT, pos=lower)
    QTest.mouseClick(viewport, LEFT, pos=upper)
    first = see(transcript)
    QTest.mouseClick(viewport, LEFT, pos=upper)

    assert see(transcript) == plain
    assert first != second
    assert plain not in (first, second)


def test_a_wrapped_block_is_copied_as_it_was_written(transcript: TranscriptStage) -> None:
    transcript.show([answer(0, LONG)])
    transcript.click(RowAction.TOGGLE_WRAP)
    transcript.click(RowAction.COPY_CODE)
    assert transcript.clipboard() == f"first\n{WORDS}\nlast"
    header = transcript.find(RowAction.COPY_CODE).y()
    transcript.drag(QPoint(50, header + 40), QPoint(780, header + 80))
    copied = transcript.copied()
    assert copied in f"first\n{WORDS}\nlast"
    assert copied.startswith("first\nword0")
    assert copied.count(" ") > 10


@pytest.mark.parametrize("letter", ["x", "ж"])
def test_continued_lines_hang_two_columns_in_and_clicks_know_it(
    transcript: TranscriptStage, theme: Theme, letter: str
) -> None:
    line = " ".join([f"    {letter * 9}", *[letter * 9] * 12])
    transcript.show([answer(0, f"```\n{line}\n```")])
    transcript.click(RowAction.TOGGLE_WRAP)
    picture = see(transcript)
    top = ys_of(picture, LIGHT.code_header)[0] - 1 + 32 + 12
    ground = QColor(LIGHT.code_background)
    column = QFontMetricsF(theme.fonts.font(Type.CODE)).averageCharWidth()
    left = 40 + 14  # the column's and the code's

    def starts_at(number: int) -> float:
        """In columns: the first ink of a line."""
        ys = range(top + number * 20, top + 20 + number * 20)
        inked = (x for x in range(50, 700) if any(picture.pixelColor(x, y) != ground for y in ys))
        return (next(inked) - left) / column

    assert starts_at(0) == pytest.approx(4, abs=0.5)
    assert starts_at(1) == pytest.approx(6, abs=0.5)
    word = QPoint(round(left + 6 * column) + 3, top + 30)
    transcript.drag(word - QPoint(3, 0), word + QPoint(round(9 * column) - 3, 0))
    assert transcript.copied() == letter * 9


def test_what_is_found_in_a_wrapped_line_is_seen(transcript: TranscriptStage) -> None:
    transcript.show([answer(0, LONG)])
    transcript.click(RowAction.TOGGLE_WRAP)
    plain = see(transcript)
    transcript.view.finding.look_for("word59")
    found = see(transcript)

    assert not ys_of(plain, LIGHT.accent)
    accents = ys_of(found, LIGHT.accent)
    assert accents
    assert max(accents) - min(accents) < 20
    assert transcript.copied() == "word59"


def test_a_wrapped_line_keeps_its_colours(transcript: TranscriptStage) -> None:
    transcript.show([answer(0, f"```python\nx = '{WORDS}'\n```")])
    transcript.settle()
    unwrapped = ys_of(see(transcript), LIGHT.syntax.string)
    transcript.click(RowAction.TOGGLE_WRAP)
    transcript.settle()
    wrapped = ys_of(see(transcript), LIGHT.syntax.string)

    assert max(unwrapped) - min(unwrapped) < 20
    assert max(wrapped) - min(wrapped) > 60


def test_a_wrapped_block_stays_so(transcript: TranscriptStage, theme: Theme) -> None:
    transcript.show([answer(99, LONG), *conversation(50)])
    bar = transcript.view.verticalScrollBar()
    bar.setValue(0)
    transcript.settle()
    transcript.click(RowAction.TOGGLE_WRAP)
    wrapped = see(transcript)
    theme.set_appearance(Appearance.DARK)
    theme.set_appearance(Appearance.LIGHT)
    assert see(transcript) == wrapped
    transcript.view.set_zoom(1.5)
    transcript.view.set_zoom(1.0)
    assert see(transcript) == wrapped
    bar.setValue(bar.maximum())  # so far away that nothing but the height is kept
    transcript.settle()
    bar.setValue(0)
    assert see(transcript) == wrapped


def test_a_block_that_is_being_written_wraps_on(transcript: TranscriptStage) -> None:
    begun = replace(answer(0, ""), status=ItemStatus.STREAMING)
    transcript.show([question(0), begun])
    transcript.view.append_delta("a0", Channel.ANSWER, LONG[:300])
    transcript.view.flush()
    transcript.click(RowAction.TOGGLE_WRAP)
    for at in range(300, len(LONG), 7):
        transcript.view.append_delta("a0", Channel.ANSWER, LONG[at : at + 7])
        transcript.view.flush()
    transcript.view.finish(answer(0, LONG))
    written = see(transcript)
    transcript.show([question(0), answer(0, LONG)])
    assert see(transcript) != written
    transcript.click(RowAction.TOGGLE_WRAP)
    assert see(transcript) == written


def test_wrapped_code_does_not_scroll_sideways(transcript: TranscriptStage) -> None:
    transcript.show([answer(0, LONG)])
    transcript.click(RowAction.TOGGLE_WRAP)
    before = see(transcript)
    push_sideways(transcript, transcript.find(RowAction.COPY_CODE) + QPoint(-300, 60))
    assert see(transcript) == before
    transcript.click(RowAction.TOGGLE_WRAP)
    plain = see(transcript)
    push_sideways(transcript, transcript.find(RowAction.COPY_CODE) + QPoint(-300, 60))
    assert see(transcript) != plain


@pytest.mark.parametrize(
    ("heading", "says"),
    [
        (CodeHeading("python", 20, None), "python"),
        (CodeHeading("python", 1234, True), "python · 1,234 lines"),
        (CodeHeading("", 21, False), "21 lines"),
        (CodeHeading("", 2, False), ""),
    ],
)
def test_long_code_says_how_long_it_is(heading: CodeHeading, says: str) -> None:
    assert str(heading) == says


def test_buttons_stand_apart_evenly_and_end_where_the_code_may(
    transcript: TranscriptStage,
) -> None:
    transcript.show([answer(0, LONG)])
    picture = see(transcript)
    ground = QColor(LIGHT.code_header)
    ys = ys_of(picture, LIGHT.code_header)[4:-4]
    first = transcript.find(RowAction.TOGGLE_WRAP).x()
    inked = [x for x in range(first, 755) if any(picture.pixelColor(x, y) != ground for y in ys)]
    gaps = [after - before for before, after in pairwise(inked) if after - before > 12]

    assert len(gaps) == 2
    assert abs(gaps[0] - gaps[1]) <= 2  # a glyph does not fill its advance
    column_right = (800 + 720) // 2
    assert 14 <= column_right - inked[-1] <= 16


BARS = "█" * 8  # full ink from edge to edge
WIDE_TABLE = f"| {' | '.join([BARS] * 12)} |\n|{'-|' * 12}\n| {' | '.join([BARS] * 12)} |"


@pytest.mark.parametrize("text", [f"```\n{BARS * 30}\n```", WIDE_TABLE], ids=["code", "table"])
@pytest.mark.parametrize("appearance", [Appearance.LIGHT, Appearance.DARK])
def test_what_goes_on_beyond_an_edge_fades_there(
    transcript: TranscriptStage, theme: Theme, text: str, appearance: Appearance
) -> None:
    theme.set_appearance(appearance)
    transcript.show([answer(0, text)])
    end = transcript.find(RowAction.COPY_MESSAGE).y() - GRID

    def strength(x: int) -> float:
        """Of the strongest ink in the few pixels from x on: 1 as in the middle."""
        picture = see(transcript)
        ground = picture.pixelColor(5, 300).lightness()

        def ink(first: int) -> int:
            around = ((x, y) for x in range(first, first + 8) for y in range(60, end))
            return max(abs(picture.pixelColor(x, y).lightness() - ground) for x, y in around)

        return ink(x) / ink(390)

    left, right = 56, 736  # as far inside as code begins
    assert strength(left) > 0.8
    assert strength(right + 16) < 0.4
    for _ in range(10):
        push_sideways(transcript, QPoint(400, 70))
    assert strength(right) > 0.8
    assert strength(left - 14) < 0.4
