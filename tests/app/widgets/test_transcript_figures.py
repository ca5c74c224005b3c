"""Figures under an answer: in a narrow column they end inside it, and the tooltip has all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QImage, QPainter

from app.theme.palette import Theme
from app.viewmodels.items import TranscriptItems
from app.viewmodels.phases import Planned
from app.viewmodels.state_line import state_line
from app.viewmodels.transcript import ReplyFigures, TranscriptItem, Version
from app.widgets.transcript.rows.actions import (
    ActionsRow,
    answer_actions,
    figures_text,
    user_actions,
)
from app.widgets.transcript.rows.formula_shelf import FormulaShelf
from app.widgets.transcript.rows.look import Look
from app.widgets.transcript.rows.picture_shelf import PictureShelf
from app.widgets.transcript.rows.row import Paint, RowAction
from app.widgets.transcript.view import NO_PICTURES
from tests.app.viewmodels.test_items import EMPTY, USAGE, finished, send
from tests.fakes.pixels import pixels_of
from tests.fakes.transcript_samples import answer, question

ALL = "58 tok/s · first word 0.11 s · 212 tokens"


@pytest.mark.parametrize(("width", "is_cut"), [(600, False), (320, True), (230, True)])
def test_figures_end_inside_a_narrow_column(theme: Theme, width: int, is_cut: bool) -> None:
    shelf = FormulaShelf()
    row = answer_actions(Look(theme, shelf, PictureShelf(NO_PICTURES)), answer(0, "Yes."))
    row.measure(width)
    figures = [hit for hit in row.hits() if ALL in hit.tip]
    assert bool(figures) == is_cut
    assert all(hit.rect.right() <= width + 6 for hit in row.hits()), "6 px: the margin of an icon"
    shelf.close()


def test_answer_with_drafts_claims_no_gain_in_speed(theme: Theme) -> None:
    # The usage has no duration of passes without drafts to compare with.
    usage = replace(USAGE, passes=50, drafted_tokens=130, accepted_tokens=104)
    _user, reply = TranscriptItems().of(finished(send(EMPTY, 1), usage), {})
    assert reply.state_line is not None
    shelf = FormulaShelf()
    row = answer_actions(Look(theme, shelf, PictureShelf(NO_PICTURES)), reply)
    row.measure(600)
    tips = [hit.tip for hit in row.hits() if hit.target.action is RowAction.EXPLAIN]
    assert tips == [reply.state_line.explained]
    shelf.close()


def test_long_wait_has_the_form_of_the_line_above_the_answer() -> None:
    phase = Planned(plan=USAGE.plan, restore_ms=0.0, wait_ms=132_600.0)
    assert "first word after 2 min 13 s" in state_line(phase).text
    assert figures_text(ReplyFigures(first_token_s=132.6)) == "first word 2 min 13 s"


def test_figures_of_a_continued_answer_say_that_they_are_about_its_last_part() -> None:
    figures = ReplyFigures(decode_tok_s=3.3, first_token_s=0.92, num_tokens=1_067, num_last=12)
    assert (
        figures_text(figures)
        == "3.3 tok/s · first word 0.92 s · 1,067 tokens, speed measured on the last 12"
    )


def test_buttons_stay_in_place_when_a_second_version_appears(theme: Theme) -> None:
    shelf = FormulaShelf()
    look = Look(theme, shelf, PictureShelf(NO_PICTURES))
    for actions, item in ((answer_actions, answer(0, "Yes.")), (user_actions, question(0))):
        places: list[dict[str, QRectF]] = []
        for version in (Version(1, 1), Version(2, 2)):
            row = actions(look, replace(item, version=version))
            row.measure(600)
            places.append({hit.tip: hit.rect for hit in row.hits()})
        one, two = places
        assert one.items() <= two.items()
        assert len(two) >= len(one) + 1
    shelf.close()


@pytest.mark.parametrize("actions", [answer_actions, user_actions])
def test_buttons_of_a_message_fit_the_narrowest_window_with_larger_text(
    theme: Theme, actions: Callable[[Look, TranscriptItem], ActionsRow]
) -> None:
    shelf = FormulaShelf()
    look = Look(theme, shelf, PictureShelf(NO_PICTURES), 2.0)
    width = look.column(376)  # a window of 640 px with its sidebar
    row = actions(look, replace(answer(0, "Yes."), version=Version(2, 3)))
    assert row.measure(width) == look.px(28)
    margin = look.px(6)  # of an icon
    buttons = [hit.rect for hit in row.hits() if hit.target.action is not RowAction.EXPLAIN]
    assert len(buttons) >= 5
    assert all(-margin <= rect.left() < rect.right() <= width + margin for rect in buttons)
    assert all(rect.width() >= look.px(16) for rect in buttons)
    shelf.close()


@pytest.mark.parametrize("names_model", [True, False])
def test_name_of_the_model_stays_on_show_where_several_answered(
    theme: Theme, names_model: bool
) -> None:
    shelf = FormulaShelf()
    figures = ReplyFigures(num_tokens=212, model_name="Tiny", names_model=names_model)
    row = answer_actions(
        Look(theme, shelf, PictureShelf(NO_PICTURES)), replace(answer(0, "Yes."), figures=figures)
    )
    image = QImage(600, row.measure(600), QImage.Format.Format_ARGB32)
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    row.paint(Paint(painter, top=0, bottom=image.height(), ground="#FFFFFF", actions_shown=False))
    painter.end()
    assert bool(pixels_of(image).any()) is names_model
    shelf.close()
