"""Typeset formulas in a helper process, cache the results and paint them in any colour.

During its layout, a row looks up its formulas in the `FormulaShelf`. If a formula is not in the
cache, the row shows the LaTeX source, and the shelf typesets the formula in its helper process. If
the formula takes too long, the helper process is ended. The signal `FormulaShelf.arrived` makes the
view measure the waiting rows again. All classes of this module are used on the main thread only.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from functools import partial
from typing import cast

from PySide6.QtCore import QObject, QPointF, QRectF, QTimer, Signal
from PySide6.QtGui import QPainter
from PySide6.QtSvg import QSvgRenderer

from app.bridge.tasks import TaskLane
from app.theme.tokens import Millis
from app.viewmodels.helper import Helper, HelperEndedError, HelperError
from app.viewmodels.typeset import INK, Formula, TypesetFormula, Undrawn
from app.words import transcript as words

MAX_KEPT = 1_000  # maximum number of cached formulas; each takes about 10 KB
# Factor for the font size of formulas. Without it, formulas look smaller than the text around them.
_SCALE = 1.1
_PAGE_SHARE = 0.8  # maximum height of a formula on paper, as a share of the page


class Engraving:
    """A typeset formula as SVG. The SVG is parsed once for each text colour."""

    def __init__(self, picture: TypesetFormula) -> None:
        self.picture = picture
        self._renderers: dict[str, QSvgRenderer] = {}

    def paint(self, painter: QPainter, rect: QRectF, ink: str) -> None:
        renderer = self._renderers.get(ink)
        if renderer is None:
            renderer = QSvgRenderer(self.picture.svg.replace(INK, ink).encode())
            self._renderers[ink] = renderer
        renderer.render(painter, rect)


class Drawing:
    """A typeset formula, scaled to the size of the text around it. Lengths are in pixels."""

    def __init__(self, engraving: Engraving, text_size: float) -> None:
        self._engraving = engraving
        # Length of one em in pixels, before fit() shrinks the formula.
        self._em = text_size * _SCALE
        self.shrunk = 1.0  # scale factor set by fit(), at most 1

    def fit(self, width: float, page_height: float | None) -> None:
        """Shrink the formula if it is wider than `width` or higher than most of a page."""
        picture = self._engraving.picture
        self.shrunk = min(1.0, width / (picture.width * self._em))
        if page_height is not None:
            height = (picture.ascent + picture.descent) * self._em
            self.shrunk = min(self.shrunk, _PAGE_SHARE * page_height / height)

    @property
    def width(self) -> float:
        return self._scaled(self._engraving.picture.width)

    @property
    def ascent(self) -> float:
        return self._scaled(self._engraving.picture.ascent)

    @property
    def descent(self) -> float:
        return self._scaled(self._engraving.picture.descent)

    def paint(self, painter: QPainter, at: QPointF, ink: str) -> None:
        """Paint the formula. `at` is the left end of the baseline of the formula."""
        rect = QRectF(at.x(), at.y() - self.ascent, self.width, self.ascent + self.descent)
        self._engraving.paint(painter, rect, ink)

    def _scaled(self, length: float) -> float:
        return length * self._em * self.shrunk


class FormulaShelf(QObject):
    """A cache of typeset formulas, and the queue of formulas to typeset.

    The formula that was looked up last is typeset first, because it is probably visible.
    """

    # Emitted when some formulas were typeset or could not be typeset. Rows with these formulas must
    # then be measured again.
    arrived = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._helper = Helper()
        # The worker thread, which waits for results of the helper process.
        self._lane = TaskLane("formulas", self)
        # The cache, least recently used first.
        self._made: OrderedDict[Formula, Engraving | Undrawn] = OrderedDict()
        # The queue. The formula at its end is typeset next.
        self._wanted: OrderedDict[Formula, None] = OrderedDict()
        self._making: Formula | None = None  # formula that is being typeset
        # All formulas that become ready within this interval share one `arrived` signal, so that
        # the view lays out the rows only once.
        self._timer = QTimer(self, singleShot=True, interval=Millis.FLUSH_INACTIVE)
        self._timer.timeout.connect(self.arrived)

    def find(self, formula: Formula) -> Engraving | None:
        """Return a typeset formula from the cache. Add a formula that is not cached to the queue.

        Return None if the formula is queued, is being typeset or cannot be typeset.
        """
        if formula in self._made:
            self._made.move_to_end(formula)
            made = self._made[formula]
            return made if isinstance(made, Engraving) else None
        if formula != self._making:
            self._wanted[formula] = None
            self._wanted.move_to_end(formula)
            if len(self._wanted) > MAX_KEPT:
                self._wanted.popitem(last=False)
            self._make_next()
        return None

    def is_made(self, formula: Formula) -> bool:
        """Return True if typesetting the formula has finished, with success or failure."""
        return formula in self._made

    def why_undrawn(self, formula: Formula) -> str:
        """Return the reason why a formula cannot be typeset, or "" if there is none so far."""
        made = self._made.get(formula)
        return made.why if isinstance(made, Undrawn) else ""

    @property
    def is_idle(self) -> bool:
        """True if no formula is being typeset and `arrived` was emitted for all results."""
        return self._making is None and not self._timer.isActive()

    def close(self) -> None:
        """End the helper process and the worker thread."""
        self._helper.close()
        self._lane.stop()

    def _make_next(self) -> None:
        if self._making is None and self._wanted:
            self._making, _ = self._wanted.popitem()
            self._lane.run(
                partial(self._typeset, self._making), partial(self._on_made, self._making)
            )

    def _typeset(self, formula: Formula) -> TypesetFormula | Undrawn:
        """Typeset a formula, on the worker thread."""
        try:
            made = self._helper.call("formula", formula.latex, formula.display)
        except HelperEndedError:
            return Undrawn(words.FORMULA_TOO_SLOW)
        except HelperError:
            return Undrawn(words.FORMULA_INVALID)
        fields = cast("list[str]", made)
        if len(fields) == 1:
            return Undrawn(fields[0])
        return TypesetFormula(*cast("tuple[str, float, float, float]", made))

    def _on_made(self, formula: Formula, made: TypesetFormula | Undrawn) -> None:
        self._made[formula] = Engraving(made) if isinstance(made, TypesetFormula) else made
        if len(self._made) > MAX_KEPT:
            self._made.popitem(last=False)
        self._making = None
        self._make_next()
        if not self._timer.isActive():
            self._timer.start()


class Awaited:
    """A list of formulas that one row, or one table, waits for."""

    def __init__(self, shelf: FormulaShelf, formulas: Iterable[Formula] = ()) -> None:
        self._shelf = shelf
        self._missing: list[Formula] = []
        for formula in formulas:
            self.find(formula)

    def find(self, formula: Formula) -> Engraving | None:
        """Look up a formula in the shelf. Add a formula that is not typeset yet to the list."""
        engraving = self._shelf.find(formula)
        if engraving is None and not self._shelf.is_made(formula):
            self._missing.append(formula)
        return engraving

    def __bool__(self) -> bool:
        return bool(self._missing)

    @property
    def has_news(self) -> bool:
        """True if typesetting has finished or failed for at least one formula of the list."""
        return any(self._shelf.is_made(formula) for formula in self._missing)

    def ask_again(self) -> None:
        """Move the formulas of the list to the front of the typesetting queue.

        Call this method when the row is painted, so that visible formulas are typeset first.
        """
        for formula in self._missing:
            self._shelf.find(formula)
