"""Code blocks of the transcript: header, wrapping of long lines, fading at the edges."""

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
from app.viewmodels.blocks import CodeBlock
from app.viewmodels.lexer_shelf import LexerShelf
from app.viewmodels.transcript import ItemStatus
from app.widgets.transcript.messages import body
from app.widgets.transcript.messages.body import FEED
from app.widgets.transcript.rows.code import CodeRow
from app.widgets.transcript.rows.code_header import CodeHeading
from app.widgets.transcript.rows.look import Look
from app.widgets.transcript.rows.row import RowAction
from engine.types import Channel
from tests.fakes.pixels import pixels_of
from tests.fakes.transcript_samples import CODE, answer, conversation, question
from tests.fakes.transcript_stage import GRID, LEFT, TranscriptStage

WORDS = " ".join(f"word{number}" for number in range(60))
LONG = f"```\nfirst\n{WORDS}\nlast\n```"
AWAY = QPoint(5, 590)


def see(stage: TranscriptStage) -> QImage:
    """Move the mouse pointer away from the text and return a picture of the view."""
    # Move to two positions, because Qt sends no event if the pointer is already there.
    for point in (AWAY + QPoint(1, 1), AWAY):
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
    """Return the y of each pixel row that contains a pixel of this colour."""
    has_ink = (pixels_of(picture) == QColor(color).rgb()).any(axis=1)
    return has_ink.nonzero()[0].tolist()


def test_wrap_button_is_shown_only_if_a_line_is_too_long(transcript: TranscriptStage) -> None:
    transcript.show([answer(0, CODE)])
    assert not transcript.has(RowAction.TOGGLE_WRAP)
    transcript.show([answer(0, LONG)])
    assert transcript.has(RowAction.TOGGLE_WRAP)


def test_wrapping_adds_lines_and_keeps_the_button_in_place(
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

    assert transcript.end - end == 4 * 20  # four more lines of 20 px
    assert transcript.find(RowAction.TOGGLE_WRAP) == button
    assert wrapped != plain
    transcript.click(RowAction.TOGGLE_WRAP)
    assert see(transcript) == plain
    assert transcript.end == end


@pytest.mark.parametrize("before", ["", "> ", "- "])
def test_wrapped_block_has_the_same_height_after_resizing_back(
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
    assert ys  # rows of the block's header are visible


def test_wrap_button_wraps_only_its_own_block(transcript: TranscriptStage) -> None:
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


def test_copy_of_a_wrapped_block_has_no_added_line_breaks(transcript: TranscriptStage) -> None:
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
def test_continued_line_is_indented_and_hit_tested_two_columns_in(
    transcript: TranscriptStage, theme: Theme, letter: str
) -> None:
    line = " ".join([f"    {letter * 9}", *[letter * 9] * 12])
    transcript.show([answer(0, f"```\n{line}\n```")])
    transcript.click(RowAction.TOGGLE_WRAP)
    picture = see(transcript)
    top = ys_of(picture, LIGHT.code_header)[0] - 1 + 32 + 12
    ground = QColor(LIGHT.code_background)
    column = QFontMetricsF(theme.fonts.font(Type.CODE)).averageCharWidth()
    left = 40 + 14  # left margin of the reading column and padding of the code block

    def starts_at(number: int) -> float:
        """Return the indentation of a displayed line, measured in the picture, in columns."""
        ys = range(top + number * 20, top + 20 + number * 20)
        inked = (x for x in range(50, 700) if any(picture.pixelColor(x, y) != ground for y in ys))
        return (next(inked) - left) / column

    assert starts_at(0) == pytest.approx(4, abs=0.5)
    assert starts_at(1) == pytest.approx(6, abs=0.5)
    word = QPoint(round(left + 6 * column) + 3, top + 30)
    transcript.drag(word - QPoint(3, 0), word + QPoint(round(9 * column) - 3, 0))
    assert transcript.copied() == letter * 9


def test_found_text_in_a_wrapped_line_is_marked(transcript: TranscriptStage) -> None:
    transcript.show([answer(0, LONG)])
    transcript.click(RowAction.TOGGLE_WRAP)
    plain = see(transcript)
    transcript.view.find_controller.look_for("word59")
    found = see(transcript)

    assert not ys_of(plain, LIGHT.accent)
    accents = ys_of(found, LIGHT.accent)
    assert accents
    assert max(accents) - min(accents) < 20
    assert transcript.copied() == "word59"


def test_wrapped_line_keeps_its_syntax_colours(transcript: TranscriptStage) -> None:
    transcript.show([answer(0, f"```python\nx = '{WORDS}'\n```")])
    transcript.settle()
    unwrapped = ys_of(see(transcript), LIGHT.syntax.string)
    transcript.click(RowAction.TOGGLE_WRAP)
    transcript.settle()
    wrapped = ys_of(see(transcript), LIGHT.syntax.string)

    assert max(unwrapped) - min(unwrapped) < 20
    assert max(wrapped) - min(wrapped) > 60


@pytest.mark.slow
def test_block_stays_wrapped_after_theme_zoom_and_scrolling(
    transcript: TranscriptStage, theme: Theme
) -> None:
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
    bar.setValue(bar.maximum())  # scroll away, so that the view drops the message's layout
    transcript.settle()
    bar.setValue(0)
    assert see(transcript) == wrapped


def test_growing_block_stays_wrapped(transcript: TranscriptStage) -> None:
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


def test_growing_block_keeps_its_row_while_text_waits_to_be_parsed(
    transcript: TranscriptStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[CodeBlock] = []

    class CountedRow(CodeRow):
        def __init__(
            self, look: Look, shelf: LexerShelf, block: CodeBlock, wrapped: set[int]
        ) -> None:
            made.append(block)
            super().__init__(look, shelf, block, wrapped)

    monkeypatch.setattr(body, "CodeRow", CountedRow)
    transcript.show([replace(answer(0, ""), status=ItemStatus.STREAMING)])
    transcript.view.append_delta("a0", Channel.ANSWER, "```python\n")
    for _ in range(5):
        # This text is so long that it is parsed in two slices.
        transcript.view.append_delta("a0", Channel.ANSWER, "return 1  # text\n" * (FEED // 10))
        transcript.view.flush()

    assert len(made) == 1, [block.text[:20] for block in made]


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
def test_code_header_has_number_of_lines_if_the_block_is_long(
    heading: CodeHeading, says: str
) -> None:
    assert str(heading) == says


def test_header_buttons_are_spaced_evenly_and_end_at_the_padding(
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
    assert abs(gaps[0] - gaps[1]) <= 2  # a glyph does not fill its advance width
    column_right = (800 + 720) // 2
    assert 14 <= column_right - inked[-1] <= 16


def test_language_in_the_header_of_a_narrow_code_block_is_whole(
    transcript: TranscriptStage,
) -> None:
    transcript.show([answer(0, f"```python\n{WORDS}\n```")])
    wide = language_width(transcript)
    transcript.view.resize(260, 400)
    assert transcript.has(RowAction.TOGGLE_WRAP)
    assert language_width(transcript) == wide


def language_width(stage: TranscriptStage) -> int:
    """Return the width of the first text in the header of a code block."""
    picture = see(stage)
    ground = QColor(LIGHT.code_header)
    ys = ys_of(picture, LIGHT.code_header)[4:-4]
    is_ground = [
        all(picture.pixelColor(x, y) == ground for y in ys) for x in range(picture.width())
    ]
    start = is_ground.index(True)  # right of the edge of the block
    inked = [x for x in range(start, len(is_ground)) if not is_ground[x]]
    end = next(x for x, after in pairwise(inked) if after - x > 12)
    return end - inked[0]


BARS = "█" * 8  # block characters: ink from edge to edge
WIDE_TABLE = f"| {' | '.join([BARS] * 12)} |\n|{'-|' * 12}\n| {' | '.join([BARS] * 12)} |"


@pytest.mark.parametrize("text", [f"```\n{BARS * 30}\n```", WIDE_TABLE], ids=["code", "table"])
@pytest.mark.parametrize("appearance", [Appearance.LIGHT, Appearance.DARK])
def test_wide_content_fades_at_the_edge_where_it_continues(
    transcript: TranscriptStage, theme: Theme, text: str, appearance: Appearance
) -> None:
    theme.set_appearance(appearance)
    transcript.show([answer(0, text)])
    end = transcript.find(RowAction.COPY_MESSAGE).y() - GRID

    def strength(x: int) -> float:
        """Return the contrast of 8 pixel columns at x, relative to the contrast in the middle."""
        picture = see(transcript)
        ground = picture.pixelColor(5, 300).lightness()

        def ink(first: int) -> int:
            around = ((x, y) for x in range(first, first + 8) for y in range(60, end))
            return max(abs(picture.pixelColor(x, y).lightness() - ground) for x, y in around)

        return ink(x) / ink(390)

    left, right = 56, 736  # x at which the text of a code block begins and ends
    assert strength(left) > 0.8
    assert strength(right + 16) < 0.4
    for _ in range(10):
        push_sideways(transcript, QPoint(400, 70))
    assert strength(right) > 0.8
    assert strength(left - 14) < 0.4
