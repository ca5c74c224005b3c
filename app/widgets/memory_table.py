"""The table of chats in memory and on disk: the same values as the map. Main thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QEvent, QItemSelectionModel, QSignalBlocker, Qt, Signal
from PySide6.QtGui import QFocusEvent, QHelpEvent, QKeyEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTreeWidget, QTreeWidgetItem, QWidget
from typing_extensions import override

from app.theme.palette import Theme
from app.viewmodels.memory_map import MapRow
from app.widgets.focus_ring import FocusRing
from app.widgets.tips import show_tip
from app.words import memory_map as words

_COLUMNS = (words.CHAT, words.TOKENS, words.IN_MEMORY, words.ON_DISK, words.STATE)
_NUMBERS = (1, 2, 3)  # columns of numbers, which end at the right


_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


class _Item(QTreeWidgetItem):
    """A line of the table, which is sorted by its values and not by its texts."""

    row: MapRow

    @property
    def values(self) -> tuple[Any, ...]:
        """The values of the columns."""
        row = self.row
        return (
            row.title.casefold(),
            row.num_tokens,
            row.memory_bytes,
            row.disk_bytes,
            row.state_text,
        )

    @override
    def __lt__(self, other: QTreeWidgetItem, /) -> bool:
        assert isinstance(other, _Item)
        column = self.treeWidget().sortColumn()
        mine, theirs = self.values[column], other.values[column]
        return (mine, self.row.key) < (theirs, other.row.key)


class MemoryTable(QTreeWidget):
    """One line per part, sorted by the column that the user has clicked."""

    chosen = Signal(object)  # argument: frozenset of the keys that the user has selected
    opened = Signal(str)  # argument: key of the line

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._rows: list[MapRow] = []
        self._items: dict[str, _Item] = {}
        self.setObjectName("memoryTable")
        self.setAccessibleName(words.TABLE)
        self.setHeaderLabels(_COLUMNS)
        self.setRootIsDecorated(False)
        self.setUniformRowHeights(True)
        self.setAllColumnsShowFocus(True)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSortingEnabled(True)
        self.sortByColumn(2, Qt.SortOrder.DescendingOrder)
        header = self.header()
        header.setStretchLastSection(False)
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        for column in _NUMBERS:
            self.headerItem().setTextAlignment(column, _RIGHT)
        FocusRing(theme, self)
        self.itemSelectionChanged.connect(self._on_selected)
        self.itemDoubleClicked.connect(self._open_item)

    def show_rows(self, rows: Sequence[MapRow], selected: frozenset[str]) -> None:
        """Show parts. Lines that are there stay where they are, unless their values change."""
        with QSignalBlocker(self):
            if rows != self._rows:
                self._rows = list(rows)
                self._show_lines()
            for key, item in self._items.items():
                if item.isSelected() != (key in selected):
                    item.setSelected(key in selected)

    def _show_lines(self) -> None:
        self.setSortingEnabled(False)
        keys = {row.key for row in self._rows}
        for key in [key for key in self._items if key not in keys]:
            self.takeTopLevelItem(self.indexOfTopLevelItem(self._items.pop(key)))
        for row in self._rows:
            self._show_row(row)
        self.setSortingEnabled(True)

    def _show_row(self, row: MapRow) -> None:
        item = self._items.get(row.key)
        is_new = item is None
        if item is None:
            item = self._items[row.key] = _Item()
            for column in _NUMBERS:
                item.setTextAlignment(column, _RIGHT)
        elif item.row == row:
            return
        item.row = row
        for column, text in enumerate(row.cells):
            item.setText(column, text)
        if not row.is_chat:
            item.setFlags(Qt.ItemFlag.ItemIsEnabled)
        if is_new:
            self.addTopLevelItem(item)

    def _on_selected(self) -> None:
        keys = (item.row.key for item in self.selectedItems() if isinstance(item, _Item))
        self.chosen.emit(frozenset(keys))

    def _open_item(self, item: QTreeWidgetItem | None) -> None:
        if isinstance(item, _Item):
            self.opened.emit(item.row.key)

    @override
    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        first = self.model().index(0, 0)
        if not self.currentIndex().isValid() and first.isValid():
            self.selectionModel().setCurrentIndex(first, QItemSelectionModel.SelectionFlag.NoUpdate)

    @override
    def viewportEvent(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent):
            index = self.indexAt(event.pos())
            is_cut = self.sizeHintForIndex(index).width() > self.visualRect(index).width()
            show_tip(self.viewport(), event.globalPos(), str(index.data()) if is_cut else "")
            return True
        return super().viewportEvent(event)

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._open_item(self.currentItem())
        elif event.key() == Qt.Key.Key_Escape:
            event.ignore()
        else:
            super().keyPressEvent(event)
