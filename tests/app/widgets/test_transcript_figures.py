"""Figures under an answer: in a narrow column they end inside it, and the tooltip has all of them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QImage, QPainter

from app.theme.palette import Theme
from app.viewmodels.transcript import ReplyFigures
from app.widgets.transcript.rows.actions import answer_actions
from app.widgets.transcript.rows.formula_shelf import FormulaShelf
from app.widgets.transcript.rows.look import Look
from app.widgets.transcript.rows.row import Paint
from tests.fakes.pixels import pixels_of
from tests.fakes.transcript_samples import answer

ALL = "58 tok/s · first token 0.11 s · 212 tokens"


@pytest.mark.parametrize(("width", "is_cut"), [(600, False), (320, True), (230, True)])
def test_figures_end_inside_a_narrow_column(theme: Theme, width: int, is_cut: bool) -> None:
    shelf = FormulaShelf()
    row = answer_actions(Look(theme, shelf), answer(0, "Yes."))
    row.measure(width)
    figures = [hit for hit in row.hits() if ALL in hit.tip]
    assert bool(figures) == is_cut
    assert all(hit.rect.right() <= width + 6 for hit in row.hits()), "6 px: the margin of an icon"
    shelf.close()


@pytest.mark.parametrize("names_model", [True, False])
def test_name_of_the_model_stays_on_show_where_several_answered(
    theme: Theme, names_model: bool
) -> None:
    shelf = FormulaShelf()
    figures = ReplyFigures(num_tokens=212, model_name="Tiny", names_model=names_model)
    row = answer_actions(Look(theme, shelf), replace(answer(0, "Yes."), figures=figures))
    image = QImage(600, row.measure(600), QImage.Format.Format_ARGB32)
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    row.paint(Paint(painter, top=0, bottom=image.height(), ground="#FFFFFF", actions_shown=False))
    painter.end()
    assert bool(pixels_of(image).any()) is names_model
    shelf.close()
