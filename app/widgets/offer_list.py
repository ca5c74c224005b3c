"""A note above rows of models that scroll. Main thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QEvent, QObject, QTimer, Signal
from PySide6.QtGui import QHideEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget
from typing_extensions import override

from app.theme.tokens import Space
from app.viewmodels.offer import Offer, OfferAction
from app.widgets.line_height import Sentences
from app.widgets.offer_row import OfferRow
from app.widgets.scroller import VerticalScroller

_REST_MS = 150  # time without scrolling after which the rows on show are reported


class OfferList(QWidget):
    """A note above rows that scroll. If there are no rows, a sentence takes their place."""

    rested = Signal(object)  # argument: list of the keys of the rows that can be seen

    def __init__(
        self, note: str, act: Callable[[OfferAction, str, str], None], parent: QWidget
    ) -> None:
        super().__init__(parent)
        self._act = act
        self.rows: list[OfferRow] = []
        self.note = Sentences(self, "small", note)
        self.note.setProperty("tone", "secondary")
        self.empty = Sentences(self)
        self.empty.setProperty("tone", "secondary")
        self.empty.hide()
        scroller = VerticalScroller(self)
        content = QWidget(scroller.viewport())
        content.setObjectName("offers")
        self._rows = QVBoxLayout(content)
        self._rows.setContentsMargins(0, 0, 0, 0)
        self._rows.setSpacing(Space.S)
        self._rows.addStretch()
        self._rest = QTimer(self, singleShot=True, interval=_REST_MS)
        self._rest.timeout.connect(self._report_seen)
        scroller.setWidget(content)
        self.bar = scroller.bar
        self.bar.valueChanged.connect(self._wait_for_rest)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(Space.M)
        layout.addWidget(self.note)
        layout.addWidget(self.empty)
        layout.addWidget(scroller, 1)
        content.installEventFilter(self)

    def show_offers(self, offers: Sequence[Offer], empty: str = "") -> None:
        """Show a row for each offer. Rows are made and removed at the end only."""
        while len(self.rows) > len(offers):
            row = self.rows.pop()
            row.setParent(None)
            row.deleteLater()
        while len(self.rows) < len(offers):
            row = OfferRow(self)
            row.chosen.connect(self._act)
            self._rows.insertWidget(len(self.rows), row)
            self.rows.append(row)
        for row, offer in zip(self.rows, offers, strict=True):
            row.show_offer(offer)
        self.empty.setText(empty)
        self.empty.setVisible(bool(empty) and not offers)
        if self.isVisible() and not self._rest.isActive():
            self._rest.start()

    def _wait_for_rest(self, *_: object) -> None:
        self._rest.start()

    def _report_seen(self) -> None:
        seen = [row.key for row in self.rows if not row.visibleRegion().isEmpty()]
        if seen:
            self.rested.emit(seen)

    @override
    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._rest.stop()

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Report the rows on show again after the rows or the height of the list have changed."""
        kinds = (QEvent.Type.LayoutRequest, QEvent.Type.Resize, QEvent.Type.Show)
        if event.type() in kinds and self.isVisible():
            self._rest.start()
        return super().eventFilter(watched, event)
