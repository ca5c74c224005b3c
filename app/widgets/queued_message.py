"""The dashed bubble of a queued message, which is sent when the current answer ends."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget
from typing_extensions import override

from app.theme.icons import Icon
from app.theme.palette import Theme
from app.theme.tokens import Radius, Space, Type
from app.widgets.icon_button import IconButton
from app.widgets.line_height import line_height
from app.widgets.transcript.messages.bubble import SHARE
from app.words import composer as words

# A longer text is cut to this number of characters before it is elided to the width of the bubble.
_SHOWN_LEN = 300


class QueuedMessage(QWidget):
    """The queued message's first line and a note, above the composer. Hidden if none is queued."""

    withdrawn = Signal()  # emitted when the user takes the message back

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._text = ""
        self.edit_button = IconButton(theme, Icon.EDIT, words.TAKE_BACK, self)
        self.edit_button.clicked.connect(self.withdrawn)
        self._bubble = _Bubble(theme, self)
        note = QLabel(words.QUEUED, self)
        note.setProperty("type", "small")
        note.setProperty("tone", "secondary")
        row = QHBoxLayout()
        row.setSpacing(Space.XS)
        row.addStretch(1)
        row.addWidget(self.edit_button)
        row.addWidget(self._bubble)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(Space.XS)
        layout.addLayout(row)
        layout.addWidget(note, 0, Qt.AlignmentFlag.AlignRight)
        self.hide()

    @property
    def text(self) -> str:
        return self._bubble.text()

    def show_text(self, text: str) -> None:
        """Show the start of a queued message on one line, or hide the widget if `text` is empty."""
        self._text = " ".join(text[:_SHOWN_LEN].split())
        self.setAccessibleName(words.queued_spoken(self._text) if text else "")
        self.setVisible(bool(text))
        self._elide()

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._elide()

    @override
    def event(self, event: QEvent) -> bool:
        if event.type() is QEvent.Type.LayoutRequest:  # the bubble has another font
            self._elide()
        return super().event(event)

    def _elide(self) -> None:
        self._bubble.ensurePolished()
        room = int(self.width() * SHARE) - 2 * Space.L
        metrics, mode = self._bubble.fontMetrics(), Qt.TextElideMode.ElideRight
        self._bubble.setText(metrics.elidedText(self._text, mode, room))


class _Bubble(QLabel):
    """A label with the dashed outline of a message bubble."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self.setProperty("type", "body")
        self.setProperty("tone", "secondary")
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setContentsMargins(Space.L, Space.M, Space.L, Space.M)
        self._fit()

    def _fit(self) -> None:
        self.setFixedHeight(line_height(self, Type.BODY) + 2 * Space.M)

    @override
    def changeEvent(self, arg__1: QEvent) -> None:
        super().changeEvent(arg__1)
        if arg__1.type() is QEvent.Type.FontChange:
            self._fit()

    @override
    def paintEvent(self, arg__1: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        pen = QPen(QColor(self._theme.colors.border), 1)
        pen.setDashPattern([Space.XS, Space.XS])
        painter.setPen(pen)
        outline = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        painter.drawRoundedRect(outline, Radius.BUBBLE, Radius.BUBBLE)
        painter.end()
        super().paintEvent(arg__1)
