"""Lists with painted rows: set-up of the view, the list of a sheet, its delegate. Main thread."""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QKeySequence, QPainter
from PySide6.QtWidgets import (
    QAbstractItemView,
    QListView,
    QListWidget,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)
from typing_extensions import override

from app.theme.palette import Theme
from app.theme.tokens import Space
from app.widgets.row_painting import paint_row_ground

Index = QModelIndex | QPersistentModelIndex

ROW = Qt.ItemDataRole.UserRole  # data of an item: the value that its row shows


def set_up_list(view: QListView) -> None:
    """Let a list mark the row below the pointer, scroll by pixels, and never scroll sideways."""
    view.setMouseTracking(True)
    view.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
    view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)


class RowDelegate(QStyledItemDelegate):
    """Paints rows of one height, which larger text increases. A subclass paints their content."""

    def __init__(self, theme: Theme, height: int, parent: QWidget) -> None:
        """Make a delegate. height: pixels of a row with text of normal size."""
        super().__init__(parent)
        self._theme = theme
        self._height = height

    @property
    def row_height(self) -> int:
        return round(self._height * max(1.0, self._theme.zoom))

    def paint_content(self, painter: QPainter, rect: QRect, row: object) -> None:
        """Paint the value of a row into its rectangle, which has no margins above and below."""
        raise NotImplementedError

    @override
    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        ground = option.rect.adjusted(0, 1, 0, -1)
        paint_row_ground(painter, self._theme.colors, ground, option.state)
        inner = option.rect.adjusted(Space.M, 0, -Space.M, 0)
        self.paint_content(painter, inner, index.data(ROW))
        painter.restore()

    @override
    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        return QSize(0, self.row_height)


class SheetList(QListWidget):
    """A list in a sheet. Several rows can be selected with the usual keys."""

    delete_pressed = Signal()

    def __init__(self, name: str, delegate: RowDelegate, parent: QWidget) -> None:
        super().__init__(parent)
        self.setItemDelegate(delegate)
        self.setAccessibleName(name)
        set_up_list(self)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Delete) or event.key() == Qt.Key.Key_Backspace:
            self.delete_pressed.emit()
        else:
            super().keyPressEvent(event)
