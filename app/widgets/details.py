"""The details of a problem: selectable text in an area of at most ten lines."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QLabel, QScrollArea, QSizePolicy, QWidget
from typing_extensions import override

from app.theme.tokens import Type
from app.widgets.line_height import line_height
from app.words import problems as words

MAX_LINES = 10


class Details(QScrollArea):
    """A scroll area as high as its text, up to MAX_LINES lines; longer text scrolls."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("details")
        self.setAccessibleName(words.DETAILS)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._label = label = QLabel(self)
        label.setWordWrap(True)
        label.setTextFormat(Qt.TextFormat.PlainText)
        label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        label.setAlignment(Qt.AlignmentFlag.AlignTop)
        label.setProperty("type", "code")
        label.setProperty("tone", "secondary")
        self.setWidget(label)
        self.setWidgetResizable(True)
        # A layout takes heightForWidth as a minimum, and would cut the texts above instead.
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Maximum)

    @property
    def text(self) -> str:
        return self._label.text()

    def set_text(self, text: str) -> None:
        self._label.setText(text)
        self.verticalScrollBar().setValue(0)
        self.updateGeometry()

    @override
    def sizeHint(self) -> QSize:
        around = 2 * self.frameWidth()
        text = self._label.heightForWidth(self.width() - around)
        most = MAX_LINES * line_height(self._label, Type.LOG)
        return QSize(0, min(text, most) + around)

    @override
    def resizeEvent(self, arg__1: QResizeEvent) -> None:
        super().resizeEvent(arg__1)
        if arg__1.size().width() != arg__1.oldSize().width():
            self.updateGeometry()

    @override
    def minimumSizeHint(self) -> QSize:
        return QSize(0, 0)
