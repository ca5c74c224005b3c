"""The message that is sent once the answer on its way has ended."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QWidget
from typing_extensions import override

from app.theme.icons import Icon
from app.theme.palette import Theme
from app.theme.tokens import Size, Space
from app.widgets.icon_button import IconButton
from app.words import composer as words

_SHOWN_LEN = 300  # characters; more than fit into the line


class QueuedMessage(QFrame):
    """One line above the composer; hidden while nothing waits."""

    withdrawn = Signal()

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("queued")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setMaximumWidth(Size.COLUMN + Space.L)
        self._text = ""
        self._label = QLabel(self)
        self._label.setTextFormat(Qt.TextFormat.PlainText)
        self._label.setProperty("type", "small")
        self._label.setProperty("tone", "secondary")
        self._label.setMinimumWidth(1)
        self.close_button = IconButton(theme, Icon.CLOSE, words.TAKE_BACK, self)
        self.close_button.clicked.connect(self.withdrawn)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(Space.L, Space.XS, Space.XS, Space.XS)
        layout.addWidget(self._label, 1)
        layout.addWidget(self.close_button)
        self.hide()

    @property
    def text(self) -> str:
        return self._label.text()

    def show_text(self, text: str) -> None:
        self._text = " ".join(text[:_SHOWN_LEN].split())
        self.setAccessibleName(words.queued_spoken(self._text) if text else "")
        self.setVisible(bool(text))
        self._elide()

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._elide()

    def _elide(self) -> None:
        text = words.queued(self._text)
        mode, width = Qt.TextElideMode.ElideRight, self._label.width()
        self._label.setText(self._label.fontMetrics().elidedText(text, mode, width))
