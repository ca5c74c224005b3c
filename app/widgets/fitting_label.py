"""A label of one line that shows the longest of its texts that fits. Main thread."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget
from typing_extensions import override


class FittingLabel(QLabel):
    """A label that does not widen its parent. If no text fits, the shortest one is cut at its end.

    The label is hidden while it has no text.
    """

    def __init__(self, parent: QWidget, type_name: str, tone: str | None = None) -> None:
        """Make a hidden label. type_name: style of the type scale; tone: of the text."""
        super().__init__(parent)
        self._texts: tuple[str, ...] = ("",)
        self.setProperty("type", type_name)
        self.setProperty("tone", tone)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.hide()

    def show_text(self, text: str, *shorter: str, tip: str = "") -> None:
        """Show a text, or one of the shorter ones. tip: tooltip; empty for the whole text."""
        self._texts = (text, *shorter)
        self.setToolTip(tip or text)
        self.setAccessibleName(text)
        self.setVisible(bool(text))
        self._fit()

    def _fit(self) -> None:
        metrics, room = self.fontMetrics(), self.width()
        fitting = (text for text in self._texts if metrics.horizontalAdvance(text) <= room)
        text = next(fitting, self._texts[-1])
        self.setText(metrics.elidedText(text, Qt.TextElideMode.ElideRight, room))

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    @override
    def changeEvent(self, arg__1: QEvent) -> None:
        super().changeEvent(arg__1)
        if arg__1.type() is QEvent.Type.FontChange:
            self._fit()
