"""The lexers, formulas and pictures that the rows of several views can share. Main thread only."""

from __future__ import annotations

from dataclasses import dataclass

from app.viewmodels.lexer_shelf import LexerShelf
from app.widgets.transcript.rows.formula_shelf import FormulaShelf
from app.widgets.transcript.rows.picture_shelf import PictureShelf


@dataclass(frozen=True, slots=True)
class Shelves:
    """Results of helper processes and files for rows. The creating view closes the shelves."""

    lexers: LexerShelf
    formulas: FormulaShelf
    pictures: PictureShelf
