"""Typeset formulas: made on a worker thread, cached, and painted in any colour.

A row looks up a formula in the `FormulaShelf` while it is laid out. If the formula is not in the
cache, the row shows the LaTeX source, and the shelf typesets the formula on its worker.
`FormulaShelf.arrived` then makes the view measure the waiting rows again. All classes are used on
the main thread only.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from functools import partial

from PySide6.QtCore import QObject, QPointF, QRectF, QTimer, Signal
from PySide6.QtGui import QPainter
from PySide6.QtSvg import QSvgRenderer

from app.bridge.tasks import TaskLane
from app.theme.tokens import Millis
from app.viewmodels.typeset import INK, Formula, Picture, typeset

MAX_KEPT = 1_000  # formulas; each takes some 10 KB
_SCALE = 1.1  # size of formulas relative to the text, because formula fonts have smaller letters


class Engraving:
    """A typeset formula. Its SVG is parsed once for each colour."""

    def __init__(self, picture: Picture) -> None:
        self.picture = picture
        self._renderers: dict[str, QSvgRenderer] = {}

    def paint(self, painter: QPainter, rect: QRectF, ink: str) -> None:
        renderer = self._renderers.get(ink)
        if renderer is None:
            renderer = QSvgRenderer(self.picture.svg.replace(INK, ink).encode())
            self._renderers[ink] = renderer
        renderer.render(painter, rect)


class Drawing:
    """An engraving at the size of the text around it. Lengths are in pixels."""

    def __init__(self, engraving: Engraving, text_size: float) -> None:
        self._engraving = engraving
        self._em = text_size * _SCALE  # pixels of one em before shrinking
        self._shrunk = 1.0  # scale factor set by fit(), at most 1

    def fit(self, width: float) -> None:
        """Shrink the formula to a width if it is wider."""
        self._shrunk = min(1.0, width / (self._engraving.picture.width * self._em))

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
        """Paint the formula with the left end of its baseline at a point."""
        rect = QRectF(at.x(), at.y() - self.ascent, self.width, self.ascent + self.descent)
        self._engraving.paint(painter, rect, ink)

    def _scaled(self, length: float) -> float:
        return length * self._em * self._shrunk


class FormulaShelf(QObject):
    """A cache of engravings, and the queue of formulas to typeset.

    The formula that was looked up last is typeset first: it is most likely in view.
    """

    arrived = Signal()  # formulas are ready, or failed: waiting rows must be measured again

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._lane = TaskLane("formulas", self)
        # The cache, least recently used first. None: the formula cannot be typeset.
        self._made: OrderedDict[Formula, Engraving | None] = OrderedDict()
        self._wanted: OrderedDict[Formula, None] = OrderedDict()  # queue; the last one is next
        self._making: Formula | None = None  # formula that the worker typesets now
        # Formulas that are ready within this interval cause one `arrived`, so one new layout.
        self._timer = QTimer(self, singleShot=True, interval=Millis.FLUSH_INACTIVE)
        self._timer.timeout.connect(self.arrived)

    def find(self, formula: Formula) -> Engraving | None:
        """Return the engraving of a formula, and queue the formula if it is not in the cache.

        Return None while the formula is queued, and if it cannot be typeset.
        """
        if formula in self._made:
            self._made.move_to_end(formula)
            return self._made[formula]
        if formula != self._making:
            self._wanted[formula] = None
            self._wanted.move_to_end(formula)
            if len(self._wanted) > MAX_KEPT:
                self._wanted.popitem(last=False)
            self._make_next()
        return None

    def is_made(self, formula: Formula) -> bool:
        """Return True if the formula is typeset or cannot be typeset."""
        return formula in self._made

    @property
    def is_idle(self) -> bool:
        """True if no formula is being typeset and every result has been announced by `arrived`."""
        return self._making is None and not self._timer.isActive()

    def close(self) -> None:
        """Wait for the formula on the worker, then end the worker."""
        self._lane.stop()

    def _make_next(self) -> None:
        if self._making is None and self._wanted:
            self._making, _ = self._wanted.popitem()
            self._lane.run(partial(typeset, self._making), partial(self._on_made, self._making))

    def _on_made(self, formula: Formula, picture: Picture | None) -> None:
        self._made[formula] = None if picture is None else Engraving(picture)
        if len(self._made) > MAX_KEPT:
            self._made.popitem(last=False)
        self._making = None
        self._make_next()
        if not self._timer.isActive():
            self._timer.start()


class Awaited:
    """The formulas of one row, or of one table, that are not typeset yet."""

    def __init__(self, shelf: FormulaShelf, formulas: Iterable[Formula] = ()) -> None:
        self._shelf = shelf
        self._missing: list[Formula] = []
        for formula in formulas:
            self.find(formula)

    def find(self, formula: Formula) -> Engraving | None:
        """Look up a formula in the shelf, and remember it if it is queued there."""
        engraving = self._shelf.find(formula)
        if engraving is None and not self._shelf.is_made(formula):
            self._missing.append(formula)
        return engraving

    def __bool__(self) -> bool:
        return bool(self._missing)

    @property
    def has_news(self) -> bool:
        """True if an awaited formula is ready or has failed since it was looked up."""
        return any(self._shelf.is_made(formula) for formula in self._missing)

    def ask_again(self) -> None:
        """Move the awaited formulas to the front of the queue. Call when their row is painted."""
        for formula in self._missing:
            self._shelf.find(formula)
