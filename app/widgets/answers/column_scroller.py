"""A view of columns side by side, which scrolls sideways if they do not fit. Main thread."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QWidget
from typing_extensions import override

from app.theme.tokens import Size, Space
from app.widgets.hiding_bar import HidingBar

_REST = Space.HUGE  # px in which a part of a further column is visible


class ColumnScroller(QScrollArea):
    """Columns of equal width, as many as fit. The edge of a further one shows that there is more.

    The parent of the columns must be `content`.
    """

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._columns: Sequence[QWidget] = ()
        self._shown: QWidget | None = None  # the column that a new width must not hide
        self._least = Size.ANSWER_COLUMN
        bar = HidingBar(self)
        bar.setOrientation(Qt.Orientation.Horizontal)
        self.setHorizontalScrollBar(bar)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.content = QWidget(self.viewport())
        self.setWidget(self.content)

    def show_columns(self, columns: Sequence[QWidget], zoom: float) -> None:
        """Show these columns, from left to right, at a size of text."""
        self._columns = columns
        self._least = round(Size.ANSWER_COLUMN * zoom)
        self._place()

    def reveal(self, column: QWidget) -> None:
        """Scroll as far as needed to show a column, and keep it in sight if the width changes."""
        self._shown = column
        self.ensureWidgetVisible(column, 0, 0)

    def _place(self) -> None:
        width, height = self.viewport().width(), self.viewport().height()
        count = len(self._columns)
        total = width
        if count > max(1, width // self._least):
            room = width - _REST
            total = count * room // max(1, room // self._least)
        self.content.resize(total, height)
        for number, column in enumerate(self._columns):
            left, right = (at * total // count for at in (number, number + 1))
            column.setGeometry(left, 0, right - left, height)

    @override
    def resizeEvent(self, arg__1: QResizeEvent) -> None:
        self._place()
        super().resizeEvent(arg__1)
        if self._shown is not None and self._shown in self._columns:
            self.ensureWidgetVisible(self._shown, 0, 0)
