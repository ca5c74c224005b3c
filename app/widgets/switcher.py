"""The quick switcher: a popup that goes to a chat, a command or a model by a few letters.

The field keeps the focus. Up and Down move in the list, Return opens the marked entry, Esc closes
the popup. Main thread.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import (
    QPoint,
    QPointF,
    QRect,
    QRectF,
    Qt,
    Signal,
)
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontMetrics,
    QKeyEvent,
    QPainter,
    QPaintEvent,
    QTextCharFormat,
    QTextLayout,
    QTextOption,
)
from PySide6.QtWidgets import (
    QFrame,
    QListWidget,
    QListWidgetItem,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from app.theme.icons import GRID, Icon
from app.theme.palette import Theme
from app.theme.tokens import Radius, Size, Space, Type
from app.viewmodels.switcher import Entries, Entry, EntryKind, Found
from app.widgets.announcer import announce
from app.widgets.fields import LineField
from app.widgets.hiding_bar import HidingBar
from app.widgets.line_height import Sentences
from app.widgets.painted_list import ROW, RowDelegate, set_up_list
from app.words import switcher as words

_ROWS = 9  # rows that are visible without scrolling
_ICONS = {EntryKind.CHAT: Icon.CHAT, EntryKind.COMMAND: Icon.CONTINUE, EntryKind.MODEL: Icon.MODEL}
_STEPS = {
    Qt.Key.Key_Down: 1,
    Qt.Key.Key_Up: -1,
    Qt.Key.Key_PageDown: _ROWS,
    Qt.Key.Key_PageUp: -_ROWS,
}


class _SwitcherField(LineField):
    """The text field. Return opens the marked entry; the arrow keys move the mark."""

    submitted = Signal()
    stepped = Signal(int)  # argument: number of rows, downwards

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        step = _STEPS.get(Qt.Key(event.key()))
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.submitted.emit()
        elif step is not None:
            self.stepped.emit(step)
        else:
            super().keyPressEvent(event)


class QuickSwitcher(QFrame):
    """The popup. It has a field, and the list of entries that match the text of the field."""

    chosen = Signal(object)  # argument: the Entry to open or to run

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup | Qt.WindowType.FramelessWindowHint)
        self.setObjectName("switcher")
        self.setAccessibleName(words.TITLE)
        self.setAttribute(Qt.WidgetAttribute.WA_TranslucentBackground)
        self.setFixedWidth(Size.SWITCHER_WIDTH)
        self._theme = theme
        self._delegate = _EntryDelegate(theme, Size.ROW + Space.HAIR, self)
        self._entries = Entries(())
        self.field = _SwitcherField(self)
        self.list = QListWidget(self)
        self.list.setVerticalScrollBar(HidingBar(self.list))
        self.nothing = Sentences(self, text=words.NOTHING)
        self._layout = QVBoxLayout(self)
        self._build()
        self.field.textChanged.connect(self._find)
        self.field.submitted.connect(self._submit)
        self.field.stepped.connect(self._step)
        self.list.itemClicked.connect(self._choose)
        theme.changed.connect(self.list.viewport().update)

    def open_over(self, window: QWidget, entries: Sequence[Entry]) -> None:
        """Show the popup near the top of a window, with an empty field."""
        self._entries = Entries(entries)
        self.field.clear()
        self._find("")
        corner = QPoint((window.width() - self.width()) // 2, Size.TOOLBAR + Space.XL)
        self.move(window.mapToGlobal(corner))
        self.show()
        self.field.setFocus(Qt.FocusReason.PopupFocusReason)

    def _build(self) -> None:
        self.field.setPlaceholderText(words.FIELD)
        self.field.setAccessibleName(words.FIELD)
        self.list.setItemDelegate(self._delegate)
        self.list.setAccessibleName(words.TITLE)
        self.list.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        set_up_list(self.list)
        self.list.setUniformItemSizes(True)
        self.nothing.setProperty("tone", "secondary")
        self.nothing.setContentsMargins(Space.M, Space.S, Space.M, Space.S)
        layout = self._layout
        layout.setContentsMargins(Space.M, Space.M, Space.M, Space.M)
        layout.setSpacing(Space.S)
        layout.addWidget(self.field)
        layout.addWidget(self.list)
        layout.addWidget(self.nothing)

    def _find(self, text: str) -> None:
        found = self._entries.find(text)
        self.list.clear()
        for one in found:
            item = QListWidgetItem(self.list)
            item.setData(ROW, one)
            item.setData(Qt.ItemDataRole.AccessibleTextRole, one.entry.spoken)
        self.list.setFixedHeight(min(_ROWS, len(found)) * self._delegate.row_height)
        self.list.setVisible(bool(found))
        self.nothing.setVisible(not found)
        self._layout.activate()
        self.resize(self.width(), self.sizeHint().height())
        self._mark(0)

    def _step(self, step: int) -> None:
        """Move the mark. A single step wraps around at the ends."""
        count, at = self.list.count(), self.list.currentRow()
        if count:
            is_single = abs(step) == 1
            self._mark((at + step) % count if is_single else min(max(0, at + step), count - 1))

    def _mark(self, at: int) -> None:
        self.list.setCurrentRow(at)
        if self.list.count() and self.isVisible():
            announce(self, self._found(self.list.currentItem()).entry.spoken)

    def _submit(self) -> None:
        if self.list.count():
            self._choose(self.list.currentItem())

    def _choose(self, item: QListWidgetItem) -> None:
        self.hide()
        self.chosen.emit(self._found(item).entry)

    def _found(self, item: QListWidgetItem) -> Found:
        found = item.data(ROW)
        assert isinstance(found, Found)
        return found

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.hide()
        else:
            super().keyPressEvent(event)

    @override
    def paintEvent(self, e: QPaintEvent) -> None:
        # Paint the frame here: style sheets paint no background on a translucent window.
        colors = self._theme.colors
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QColor(colors.strong_line))
        painter.setBrush(QColor(colors.raised))
        rect = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        painter.drawRoundedRect(rect, Radius.POPOVER, Radius.POPOVER)


class _EntryDelegate(RowDelegate):
    """Paints an entry: icon and name, with the matching letters bold, and the note at the right."""

    @override
    def paint_content(self, painter: QPainter, rect: QRect, row: object) -> None:
        assert isinstance(row, Found)
        colors = self._theme.colors
        size = self._theme.scaled(GRID)
        icon = QRectF(rect.left(), 0, size, size)
        icon.moveCenter(QPointF(icon.center().x(), rect.center().y() + 0.5))
        self._theme.icons.paint(painter, _ICONS[row.entry.kind], colors.secondary, icon)
        rect.setLeft(round(icon.right()) + Space.M)
        if row.entry.note:
            small = self._theme.zoomed_font(Type.SMALL)
            painter.setFont(small)
            painter.setPen(QColor(colors.secondary))
            note = QFontMetrics(small).elidedText(
                row.entry.note, Qt.TextElideMode.ElideRight, rect.width() // 3
            )
            align = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight
            painter.drawText(rect, align, note)
            rect.setRight(rect.right() - QFontMetrics(small).horizontalAdvance(note) - Space.M)
        painter.setPen(QColor(colors.text))
        layout = _name_layout(row, self._theme.zoomed_font(Type.UI), rect.width())
        height = layout.lineAt(0).height()
        layout.draw(painter, QPointF(rect.left(), rect.center().y() - height / 2 + 0.5))


def _name_layout(found: Found, font: QFont, width: int) -> QTextLayout:
    """Return the name on one line, cut to the width, with the matching letters bold."""
    bold = QFont(font)
    bold.setWeight(QFont.Weight.DemiBold)
    # Bold letters are wider, so the text is cut by their width.
    text = QFontMetrics(bold).elidedText(found.entry.name.text, Qt.TextElideMode.ElideRight, width)
    layout = QTextLayout(text, font)
    option = QTextOption()
    option.setWrapMode(QTextOption.WrapMode.NoWrap)
    layout.setTextOption(option)
    marks: list[QTextLayout.FormatRange] = []
    for start, end in found.places:
        mark = QTextLayout.FormatRange()
        mark.start, mark.length = start, end - start
        style = QTextCharFormat()
        style.setFontWeight(QFont.Weight.DemiBold)
        mark.format = style
        marks.append(mark)
    layout.setFormats(marks)
    layout.beginLayout()
    line = layout.createLine()
    line.setLineWidth(width)
    layout.endLayout()
    return layout
