"""Pictures of formulas: made on a worker, kept, painted in any ink. Main thread."""

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

MAX_KEPT = 1_000  # formulas; some 10 KB each
_SCALE = 1.1  # of the text's size: letters of formulas have less height in an em


class Engraving:
    """A picture, parsed once an ink."""

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
    """A formula at the size of the text around it. Lengths are in pixels."""

    def __init__(self, engraving: Engraving, text_size: float) -> None:
        self._engraving = engraving
        self._em = text_size * _SCALE
        self._shrunk = 1.0

    def fit(self, width: float) -> None:
        """Be no wider than that."""
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
        """Paint it at the left end of its baseline."""
        rect = QRectF(at.x(), at.y() - self.ascent, self.width, self.ascent + self.descent)
        self._engraving.paint(painter, rect, ink)

    def _scaled(self, length: float) -> float:
        return length * self._em * self._shrunk


class FormulaShelf(QObject):
    """Gives out engravings; what is not there yet is made, and `arrived` says to ask again.

    Who asked last is served first: the newest are what the reader looks at.
    """

    arrived = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._lane = TaskLane("formulas", self)
        self._made: OrderedDict[Formula, Engraving | None] = OrderedDict()
        self._wanted: OrderedDict[Formula, None] = OrderedDict()
        self._making: Formula | None = None
        # Those of one paragraph come together.
        self._timer = QTimer(self, singleShot=True, interval=Millis.FLUSH_INACTIVE)
        self._timer.timeout.connect(self.arrived)

    def find(self, formula: Formula) -> Engraving | None:
        """None while it is being made, and for what can't be set."""
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
        """Whether it needs no waiting: there is a picture, or none can be made."""
        return formula in self._made

    @property
    def is_idle(self) -> bool:
        """Whether everything that was asked for is there, and has been told."""
        return self._making is None and not self._timer.isActive()

    def close(self) -> None:
        """End the worker, with what it is at."""
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
    """Those of some formulas that are still to come."""

    def __init__(self, shelf: FormulaShelf, formulas: Iterable[Formula] = ()) -> None:
        self._shelf = shelf
        self._missing: list[Formula] = []
        for formula in formulas:
            self.find(formula)

    def find(self, formula: Formula) -> Engraving | None:
        """What the shelf gives; waited for, if it may come."""
        engraving = self._shelf.find(formula)
        if engraving is None and not self._shelf.is_made(formula):
            self._missing.append(formula)
        return engraving

    def __bool__(self) -> bool:
        return bool(self._missing)

    @property
    def has_news(self) -> bool:
        """Whether one has come, or is known not to."""
        return any(self._shelf.is_made(formula) for formula in self._missing)

    def ask_again(self) -> None:
        """They are being looked at, and so come before the rest."""
        for formula in self._missing:
            self._shelf.find(formula)
