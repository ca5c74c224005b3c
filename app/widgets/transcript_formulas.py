"""Pictures of formulas: made on a worker, kept, painted in any ink. Main thread."""

from __future__ import annotations

from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor

from PySide6.QtCore import QObject, QPointF, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import QPainter
from PySide6.QtSvg import QSvgRenderer

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
    """Gives out engravings; what is not there yet is made, and `arrived` says to ask again."""

    arrived = Signal()
    _made = Signal()  # on the worker

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="formulas")
        self._futures: OrderedDict[Formula, Future[Engraving | None]] = OrderedDict()
        self._num_unmade = 0
        # Those of one paragraph come together.
        self._timer = QTimer(self, singleShot=True, interval=Millis.FLUSH)
        self._timer.timeout.connect(self.arrived)
        self._made.connect(self._on_made, Qt.ConnectionType.QueuedConnection)

    def find(self, formula: Formula) -> Engraving | None:
        """None while it is being made, and for what can't be set."""
        future = self._futures.get(formula)
        if future is None:
            future = self._futures[formula] = self._worker.submit(_engrave, formula)
            future.add_done_callback(lambda _: self._made.emit())
            self._num_unmade += 1
            if len(self._futures) > MAX_KEPT:
                self._futures.popitem(last=False)
        self._futures.move_to_end(formula)
        return future.result() if future.done() else None

    def is_waiting_for(self, formula: Formula) -> bool:
        """Whether it is being made."""
        future = self._futures.get(formula)
        return future is not None and not future.done()

    @property
    def is_idle(self) -> bool:
        """Whether everything that was asked for is there, and has been told."""
        return self._num_unmade == 0 and not self._timer.isActive()

    def close(self) -> None:
        self._worker.shutdown(wait=True, cancel_futures=True)

    def _on_made(self) -> None:
        self._num_unmade -= 1
        if not self._timer.isActive():
            self._timer.start()


def _engrave(formula: Formula) -> Engraving | None:
    picture = typeset(formula)
    return None if picture is None else Engraving(picture)
