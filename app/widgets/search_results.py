"""The list of search results in the sidebar: found conversations and messages. Main thread."""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QPointF, QRect, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFocusEvent,
    QFont,
    QFontMetrics,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QTextCharFormat,
    QTextLayout,
    QTextOption,
)
from PySide6.QtWidgets import (
    QListWidget,
    QListWidgetItem,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)
from typing_extensions import override

from app.theme.palette import Theme
from app.theme.tokens import Size, Space, Type
from app.viewmodels.direction import isolated
from app.viewmodels.search import FoundRow
from app.widgets.elided_title import elided_title
from app.widgets.focus_ring import BY_KEYS
from app.widgets.hiding_bar import HidingBar
from app.widgets.key_press import is_typing
from app.widgets.painted_list import set_up_list
from app.widgets.row_painting import paint_row_ground
from app.words import window as words
from engine.types import ConversationId

_ROW = Qt.ItemDataRole.UserRole  # data of an item: its FoundRow
_LINES = 2  # lines of the text of a message

Index = QModelIndex | QPersistentModelIndex


class SearchResults(QListWidget):
    """The found conversations, each above its found messages."""

    opened = Signal(object)  # argument: the FoundRow that the user chose
    typed = Signal(str)  # argument: text that the user typed; it belongs in the search field
    left_above = Signal()  # the Up key was pressed in the first row
    ended = Signal()  # the Esc key was pressed

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setVerticalScrollBar(HidingBar(self))
        self._delegate = _FoundDelegate(theme, self)
        self.setItemDelegate(self._delegate)
        self.setAccessibleName(words.SEARCH_RESULTS)
        set_up_list(self)
        self.setUniformItemSizes(False)
        self.itemClicked.connect(self._open)
        theme.changed.connect(self.viewport().update)
        theme.zoomed.connect(self.scheduleDelayedItemsLayout)

    def show_rows(self, rows: list[FoundRow]) -> None:
        """Replace the rows. The same row stays selected if it is still there."""
        if rows == [self._row(number) for number in range(self.count())]:
            return
        chosen = self._row(self.currentRow()) if self.currentRow() >= 0 else None
        self.clear()
        for row in rows:
            item = QListWidgetItem(self)
            item.setData(_ROW, row)
            item.setData(Qt.ItemDataRole.AccessibleTextRole, row.spoken)
        if chosen in rows:
            self.setCurrentRow(rows.index(chosen))

    def follow(self, current: ConversationId) -> None:
        """Select a row of the conversation on show, or none if it was not found."""
        of_current = [
            number for number in range(self.count()) if self._row(number).conversation_id == current
        ]
        if self.currentRow() not in of_current:
            self.setCurrentRow(of_current[0] if of_current else -1)

    def enter(self) -> None:
        """Move the keyboard focus into the list, to its first row."""
        self.setFocus(Qt.FocusReason.TabFocusReason)
        self.setCurrentRow(max(0, self.currentRow()))

    def open_first(self) -> None:
        """Open the selected row. If none is, open the first found message, else the first chat."""
        if self.count():
            has_message = self.count() > 1 and self._row(1).node_id is not None
            self.setCurrentRow(self.currentRow() if self.currentRow() >= 0 else int(has_message))
            self._open(self.currentItem())

    def _row(self, number: int) -> FoundRow:
        row = self.item(number).data(_ROW)
        assert isinstance(row, FoundRow)
        return row

    def _open(self, item: QListWidgetItem) -> None:
        self.opened.emit(item.data(_ROW))

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        match event.key():
            case Qt.Key.Key_Return | Qt.Key.Key_Enter:
                self.open_first()
            case Qt.Key.Key_Escape:
                self.ended.emit()
            case Qt.Key.Key_Up if self.currentRow() <= 0:
                self.left_above.emit()
            case _ if is_typing(event):
                self.typed.emit(event.text())
            case _:
                self._delegate.shows_focus = True
                super().keyPressEvent(event)

    @override
    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._delegate.shows_focus = False
        super().mousePressEvent(event)

    @override
    def focusInEvent(self, event: QFocusEvent) -> None:
        self._delegate.shows_focus = event.reason() in BY_KEYS
        super().focusInEvent(event)


class _FoundDelegate(QStyledItemDelegate):
    """Paints a row: a conversation's title, or two lines of a message with the match marked."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        # False after a click: only keys show which row has the focus
        self.shows_focus = False

    @override
    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        row = index.data(_ROW)
        assert isinstance(row, FoundRow)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        body = option.rect.adjusted(Space.S, 1, -Space.S, -1)
        hidden = QStyle.StateFlag(0) if self.shows_focus else QStyle.StateFlag.State_HasFocus
        paint_row_ground(painter, self._theme.colors, body, option.state & ~hidden)
        inner = body.adjusted(Space.M, 0, -Space.M, 0)
        if row.node_id is None:
            self._paint_title(painter, inner, row)
        else:
            self._paint_text(painter, inner, row)
        painter.restore()

    def _paint_title(self, painter: QPainter, rect: QRect, row: FoundRow) -> None:
        font = self._theme.zoomed_font(Type.CARD_TITLE)
        painter.setFont(font)
        painter.setPen(QColor(self._theme.colors.text))
        title = elided_title(QFontMetrics(font), row.text, rect.width())
        painter.drawText(rect, Qt.AlignmentFlag.AlignVCenter, isolated(title))

    def _paint_text(self, painter: QPainter, rect: QRect, row: FoundRow) -> None:
        font, colors = self._theme.zoomed_font(Type.SMALL), self._theme.colors
        painter.setPen(QColor(colors.secondary))
        mark = QTextLayout.FormatRange()
        mark.start, mark.length = row.start, row.end - row.start
        mark.format = _marked(QColor(colors.text))
        layout = _laid_out(row.text, font, rect.width(), mark)
        if layout.lineCount() > _LINES:
            cut = _cut(layout, row.text, QFontMetrics(font), rect.width())
            layout = _laid_out(cut, font, rect.width(), mark)
        layout.draw(painter, QPointF(rect.left(), rect.top() + Space.XS))

    @override
    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        row = index.data(_ROW)
        assert isinstance(row, FoundRow)
        if row.node_id is None:
            return QSize(0, round((Size.ROW + Space.HAIR) * max(1.0, self._theme.zoom)))
        line = QFontMetrics(self._theme.zoomed_font(Type.SMALL)).lineSpacing()
        return QSize(0, _LINES * line + 2 * Space.XS + 2 * Space.HAIR)


def _marked(color: QColor) -> QTextCharFormat:
    found = QTextCharFormat()
    found.setForeground(color)
    found.setFontWeight(QFont.Weight.DemiBold)
    return found


def _laid_out(text: str, font: QFont, width: int, mark: QTextLayout.FormatRange) -> QTextLayout:
    """Return the layout of a text in lines of `width` px, with one marked range."""
    layout = QTextLayout(text, font)
    option = QTextOption()
    option.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
    layout.setTextOption(option)
    layout.setFormats([mark])
    layout.beginLayout()
    height = 0.0
    while (line := layout.createLine()).isValid():
        line.setLineWidth(width)
        line.setPosition(QPointF(0, height))
        height += QFontMetrics(font).lineSpacing()
    layout.endLayout()
    return layout


def _cut(layout: QTextLayout, text: str, metrics: QFontMetrics, width: int) -> str:
    """Return the text of the first _LINES lines, with an ellipsis at its end."""
    start = layout.lineAt(_LINES - 1).textStart()
    # The marked words are wider: leave room for them.
    room = width - Space.M
    return text[:start] + metrics.elidedText(text[start:], Qt.TextElideMode.ElideRight, room)
