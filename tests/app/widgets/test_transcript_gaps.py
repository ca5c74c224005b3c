"""Tests that a state line or buttons do not change the height of the gap between messages."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtGui import QFontMetricsF, QImage
from PySide6.QtTest import QTest

from app.theme.palette import Theme
from app.theme.tokens import Type
from app.viewmodels.attachments import Chip
from app.viewmodels.phases import Phase
from app.viewmodels.state_line import state_line
from app.viewmodels.transcript import ItemStatus, TranscriptItem, Version
from app.widgets.transcript.accessibility.canvas import TranscriptCanvas
from app.widgets.transcript.rows.actions import user_actions
from app.widgets.transcript.rows.formula_shelf import FormulaShelf
from app.widgets.transcript.rows.gap import GapRow, StateRow
from app.widgets.transcript.rows.look import Look
from app.widgets.transcript.rows.notes import CutLink, CutRow
from app.widgets.transcript.rows.picture_shelf import PictureShelf
from app.widgets.transcript.rows.row import RowAction
from app.widgets.transcript.view import NO_PICTURES
from tests.fakes.pixels import pixels_of
from tests.fakes.transcript_samples import READING, answer, question, restored
from tests.fakes.transcript_stage import HEIGHT, LEFT, WIDTH, TranscriptStage

COLUMN = 40  # x of the reading column's left edge
MANY = 10**100  # a number of tokens that has too many digits to fit in a window


def turns(phase: Phase | None) -> list[TranscriptItem]:
    """Return two turns whose messages are the letter H, which has the height of capital letters."""
    return [
        question(0, "H"),
        answer(0, "H"),
        question(1, "H"),
        replace(answer(1, "H"), phase=phase),
    ]


def painted(stage: TranscriptStage, left: int, right: int) -> list[tuple[int, int]]:
    """Return the vertical ranges [top, bottom) that contain ink between x = left and x = right."""
    image = stage.view.viewport().grab().toImage()
    pixels = pixels_of(image)
    rows = (pixels[:HEIGHT, left:right] != pixels[2, 2]).any(axis=1).tolist()
    edges = [y for y in range(1, HEIGHT) if rows[y] != rows[y - 1]]
    return list(zip(edges[::2], edges[1::2], strict=True))


@pytest.mark.parametrize("phase", [None, restored()], ids=["plain", "with its state line"])
def test_gap_is_32_below_a_question_and_24_below_an_answer(
    transcript: TranscriptStage, theme: Theme, phase: Phase | None
) -> None:
    transcript.show(turns(phase))
    metrics = QFontMetricsF(theme.fonts.font(Type.BODY))
    slack = (Type.BODY.line - metrics.ascent() - metrics.descent()) / 2
    # distance from the top of the line to the top of the letter
    above_letter = round(slack + metrics.ascent() - metrics.capHeight())
    # x between the rounded corners of the question's bubble
    bubbles = painted(transcript, WIDTH - COLUMN - 20, WIDTH - COLUMN - 16)
    letters = painted(transcript, COLUMN, COLUMN + 4)
    first, second = bubbles[0], bubbles[-1]
    assert letters[0][0] - above_letter - first[1] == 32
    # The text of an answer is followed by 8 px and by the line of its footer.
    text_bottom = first[1] + 32 + Type.BODY.line + 8 + Type.SMALL.line
    assert second[0] - text_bottom == 24


@pytest.mark.parametrize("zoom", [0.8, 1.0, 2.0])
def test_state_line_does_not_change_the_height_of_its_gap(
    transcript: TranscriptStage, zoom: float
) -> None:
    view = transcript.view
    view.set_zoom(zoom)
    transcript.show(turns(None))
    view.jump_to_start()
    without = places(transcript)
    for phase in (restored(), READING, None):
        view.update_item(turns(phase)[-1])
        assert places(transcript) == without
    view.update_item(turns(restored())[-1])
    view.set_items([*turns(restored()), question(2, "H")])
    view.jump_to_start()
    assert places(transcript)[:4] == without, "removing the state line moved a message"


def test_state_line_does_not_cover_the_questions_buttons(transcript: TranscriptStage) -> None:
    asked = question(0, version=Version(2, 3))
    transcript.show([asked, replace(answer(0, "x"), phase=replace(READING, total=MANY))])
    for action in (RowAction.STOP, RowAction.PREVIOUS_VERSION, RowAction.EDIT):
        assert transcript.has(action)
    assert transcript.find(RowAction.STOP).x() < transcript.find(RowAction.PREVIOUS_VERSION).x()


def test_stop_link_works_if_the_state_line_changes_during_the_click(
    transcript: TranscriptStage,
) -> None:
    writing = replace(answer(0, ""), status=ItemStatus.STREAMING, phase=READING)
    transcript.show([question(0), writing])
    viewport, stop = transcript.view.viewport(), transcript.find(RowAction.STOP)
    QTest.mouseMove(viewport, stop)
    QTest.mousePress(viewport, LEFT, pos=stop)
    transcript.view.update_item(replace(writing, phase=replace(READING, done=5_000)))
    QTest.mouseRelease(viewport, LEFT, pos=stop)
    assert transcript.asked == ["stop u0"]


def places(stage: TranscriptStage) -> list[int]:
    """Return the y of the top of each message, in screen coordinates."""
    canvas = stage.view.viewport()
    assert isinstance(canvas, TranscriptCanvas)
    assert canvas.reader is not None
    return [canvas.reader.rect(number).top() for number in range(len(canvas.reader))]


def test_state_line_without_room_shows_its_short_text(transcript: TranscriptStage) -> None:
    """The short text has only the number of restored tokens."""
    asked = replace(question(1, "H"), version=Version(2, 2))

    def picture(wait_ms: float, num_tokens: int) -> QImage:
        phase = replace(restored(num_tokens), wait_ms=wait_ms)
        transcript.show([asked, replace(answer(1, "H"), phase=phase)])
        return transcript.picture()

    assert picture(100, 1_000) != picture(200, 1_000)
    assert picture(100, MANY) == picture(200, MANY)


@pytest.mark.parametrize(("width", "is_shown"), [(400, True), (30, False)])
def test_state_line_of_a_few_letters_is_left_out(
    theme: Theme, width: int, *, is_shown: bool
) -> None:
    """A narrow window showed "…" beside the buttons of the question."""
    row = StateRow(Look(theme, FormulaShelf(), PictureShelf(NO_PICTURES)), state_line(restored()))
    row.measure(width)
    (said,) = row.hits()
    assert (said.rect.width() > 0) == is_shown


@pytest.mark.parametrize(("width", "has_buttons"), [(600, True), (250, False)])
def test_progress_takes_the_place_of_the_buttons_in_a_narrow_column(
    theme: Theme, width: int, *, has_buttons: bool
) -> None:
    """With larger text and the inspector open, the line was "… · Stop"."""
    look = Look(theme, FormulaShelf(), PictureShelf(NO_PICTURES), 1.5)
    row = GapRow(look)
    row.show(user_actions(look, question(0, "H")), state_line(READING))
    row.measure(width)
    actions = {hit.target.action for hit in row.hits()}
    assert (RowAction.EDIT in actions) == has_buttons
    (stop,) = (hit for hit in row.hits() if hit.target.action is RowAction.STOP)
    percent = QFontMetricsF(look.face(Type.SMALL).font).horizontalAdvance("Reading 33%")
    assert percent < stop.rect.left() < stop.rect.right() <= width


def test_note_on_a_cut_answer_is_whole_in_its_tooltip_in_a_narrow_column(
    theme: Theme,
) -> None:
    look = Look(theme, FormulaShelf(), PictureShelf(NO_PICTURES), 2.0)
    row = CutRow(look, "Reached the limit of 4,096 tokens", CutLink(RowAction.CONTINUE, "Continue"))
    row.measure(900)
    (link,) = row.hits()
    assert link.target.action is RowAction.CONTINUE
    row.measure(300)
    link, note = row.hits()
    assert note.tip == "Reached the limit of 4,096 tokens"
    assert note.rect.right() <= link.rect.left() < link.rect.right() <= 300


def test_message_of_files_only_has_no_empty_line(transcript: TranscriptStage) -> None:
    files = (Chip(name="notes.md", kind="md"),)
    ends: list[int] = []
    for text in ("H", ""):
        transcript.show([replace(question(0), text=text, files=files)])
        ends.append(transcript.find(RowAction.EDIT).y())
    assert ends[0] - ends[1] > Type.BODY.size
