"""The sheet of recently deleted conversations and folders: restore them, or delete them for good.

Main thread.
"""

from __future__ import annotations

from PySide6.QtCore import (
    QPointF,
    QRect,
    QRectF,
    Qt,
)
from PySide6.QtGui import QColor, QFontMetrics, QPainter
from PySide6.QtWidgets import (
    QDialog,
    QHBoxLayout,
    QLabel,
    QListWidgetItem,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from app.controllers.origin import Origin
from app.controllers.recently_deleted import RecentlyDeleted
from app.theme.icons import GRID, Icon
from app.theme.palette import Theme
from app.theme.tokens import Size, Space, Type
from app.viewmodels.deleted import DeletedRow, deleted_rows
from app.viewmodels.direction import isolated
from app.widgets.button import Button
from app.widgets.elided_title import elided_title
from app.widgets.line_height import Sentences
from app.widgets.message_sheet import ask_before
from app.widgets.painted_list import ROW, RowDelegate, SheetList
from app.words import deleted as words

_LINES = 8  # rows that are visible without scrolling


class DeletedSheet(QDialog):
    """A list of deleted conversations and folders, and buttons for the selected ones."""

    def __init__(
        self, theme: Theme, deleted: RecentlyDeleted, origin: Origin, parent: QWidget
    ) -> None:
        super().__init__(parent)
        self.setObjectName("deletedSheet")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(words.TITLE)
        self.setFixedWidth(Size.SETTINGS_WIDTH)
        self._deleted = deleted
        self._origin = origin
        self.list = _DeletedList(theme, self)
        self.restore_button = Button(words.RESTORE, self)
        self.delete_button = Button(words.DELETE_NOW, self)
        self.done_button = Button(words.DONE, self)
        self._build()
        self._connect()
        self._refresh()
        self.list.setCurrentRow(0)

    @property
    def selected(self) -> list[DeletedRow]:
        """The selected rows, from the top."""
        rows = sorted(self.list.row(item) for item in self.list.selectedItems())
        return [self.list.item(row).data(ROW) for row in rows]

    def _build(self) -> None:
        title = QLabel(words.TITLE, self)
        title.setProperty("type", "title")
        note = Sentences(self, "small", words.NOTE)
        note.setProperty("tone", "secondary")
        self.done_button.setProperty("kind", "primary")
        for button in (self.restore_button, self.delete_button):
            button.setAutoDefault(False)
        buttons = QHBoxLayout()
        buttons.setSpacing(Space.S)
        buttons.addWidget(self.delete_button)
        buttons.addStretch()
        buttons.addWidget(self.restore_button)
        buttons.addWidget(self.done_button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(Space.XL, Space.L, Space.XL, Space.L)
        layout.setSpacing(Space.M)
        layout.addWidget(title)
        layout.addWidget(note)
        layout.addWidget(self.list)
        layout.addLayout(buttons)

    def _connect(self) -> None:
        self.list.itemSelectionChanged.connect(self._enable)
        self.list.itemActivated.connect(self._restore)
        self.list.delete_pressed.connect(self._ask)
        self.restore_button.clicked.connect(self._restore)
        self.delete_button.clicked.connect(self._ask)
        self.done_button.clicked.connect(self.accept)
        self._deleted.changed.connect(self._refresh)

    def _refresh(self) -> None:
        """Show the deleted items of now. Close the sheet when there are none."""
        rows = deleted_rows(self._deleted.items, self._origin.now())
        if not rows:
            self.accept()
            return
        at = self.list.currentRow()
        self._deleted.look_into_backups()
        self.list.show_rows(rows)
        self.list.setCurrentRow(min(max(0, at), len(rows) - 1))
        self._enable()

    def _enable(self) -> None:
        for button in (self.restore_button, self.delete_button):
            button.setEnabled(bool(self.list.selectedItems()))

    def _restore(self) -> None:
        self._deleted.restore([row.item for row in self.selected])

    def _ask(self) -> None:
        """Delete the selected items for good after the user has confirmed it."""
        rows = self.selected
        if not rows:
            return
        items = [row.item for row in rows]
        folders = sum(row.color is not None for row in rows)
        in_backups = self._deleted.count_in_backups(items)
        question = words.question(title=rows[0].title, count=len(rows), folders=folders)
        note = words.no_undo(folders=folders, count=len(rows), in_backups=in_backups)
        ask_before(self, question, note, words.DELETE, lambda: self._deleted.remove(items))


class _DeletedList(SheetList):
    """The list of deleted items."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        delegate = _DeletedDelegate(theme, Size.ROW, parent)
        super().__init__(words.TITLE, delegate, parent)
        self.setFixedHeight(_LINES * delegate.row_height)

    def show_rows(self, rows: list[DeletedRow]) -> None:
        self.clear()
        for row in rows:
            item = QListWidgetItem(row.title, self)
            item.setData(ROW, row)
            spoken = words.spoken(title=row.title, left=row.left, is_folder=row.color is not None)
            item.setData(Qt.ItemDataRole.AccessibleTextRole, spoken)


class _DeletedDelegate(RowDelegate):
    """Paints a row: the title at the left, the days that are left at the right.

    The row of a folder begins with the folder in its colour.
    """

    @override
    def paint_content(self, painter: QPainter, rect: QRect, row: object) -> None:
        assert isinstance(row, DeletedRow)
        colors = self._theme.colors
        middle = Qt.AlignmentFlag.AlignVCenter
        painter.setFont(self._theme.zoomed_font(Type.SMALL))
        painter.setPen(QColor(colors.secondary))
        painter.drawText(rect, middle | Qt.AlignmentFlag.AlignRight, row.left)
        taken = QFontMetrics(painter.font()).horizontalAdvance(row.left)
        rect.setRight(rect.right() - taken - Space.M)
        if row.color is not None:
            size = self._theme.scaled(GRID)
            place = QRectF(rect.left(), 0, size, size)
            place.moveCenter(QPointF(place.center().x(), rect.center().y() + 0.5))
            self._theme.icons.paint(painter, Icon.FOLDER, getattr(colors.folder, row.color), place)
            rect.setLeft(round(place.right()) + Space.S)
        font = self._theme.zoomed_font(Type.UI)
        painter.setFont(font)
        painter.setPen(QColor(colors.text))
        title = elided_title(QFontMetrics(font), row.title, rect.width())
        painter.drawText(rect, middle, isolated(title))
