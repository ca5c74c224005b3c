"""Painting of the model picker's rows."""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QTextDocument
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget
from typing_extensions import override

from app.theme.icons import GRID, Icon
from app.theme.palette import Theme
from app.theme.tokens import Size, Space, TextStyle, Type
from app.viewmodels.models import PickerModel, PickerRow
from app.widgets.line_height import as_lines
from app.widgets.row_painting import paint_row_ground

Index = QModelIndex | QPersistentModelIndex

_MARKED = QStyle.StateFlag.State_MouseOver | QStyle.StateFlag.State_Selected
_PADDING = Space.S + Space.HAIR


class ModelDelegate(QStyledItemDelegate):
    """The item delegate of the model picker.

    A row shows the name and description of a model at the left, and its source and state at the
    right. Some rows have a sentence below, for example the reason why the model is unusable.
    """

    def __init__(self, theme: Theme, model: PickerModel, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._model = model
        self.picker_width = Size.PICKER_WIDTH  # pixels; the picker is wider with larger text

    def _line(self, style: TextStyle) -> int:
        """Return the line height of a style of the type scale, scaled by the zoom."""
        return round(style.line * self._theme.zoom)

    def _paint_row(self, painter: QPainter, rect: QRect, row: PickerRow, *, marked: bool) -> None:
        colors = self._theme.colors
        inner = rect.adjusted(Space.M, _PADDING, -Space.M, -_PADDING)
        end = self._paint_end(painter, inner, row, marked=marked)
        top = QRect(inner.left(), inner.top(), end - inner.left(), self._line(Type.UI))
        self._text(
            painter, top, row.name, Type.LABEL, colors.text if row.usable else colors.tertiary
        )
        second = top.translated(0, self._line(Type.UI) + Space.HAIR)
        second.setHeight(self._line(Type.SMALL))
        ink = colors.secondary if row.usable else colors.tertiary
        self._text(painter, second, row.description, Type.SMALL, ink)
        if row.sentence:
            painter.translate(inner.left(), second.bottom() + 1 + Space.HAIR)
            self._sentence(row.sentence).drawContents(painter)

    def _sentence(self, text: str) -> QTextDocument:
        """Lay out the sentence below a row as a text document."""
        document = QTextDocument()
        document.setDocumentMargin(0)
        document.setDefaultFont(self._theme.zoomed_font(Type.SMALL))
        document.setDefaultStyleSheet(f"p {{ color: {self._theme.colors.secondary} }}")
        document.setHtml(as_lines(text, self._line(Type.SMALL)))
        document.setTextWidth(self.picker_width - 2 * Space.XL - Space.M)
        return document

    def _paint_end(self, painter: QPainter, inner: QRect, row: PickerRow, *, marked: bool) -> int:
        """Paint source, state and progress at the right. Return the x where the name must end."""
        colors = self._theme.colors
        font = self._theme.zoomed_font(Type.CAPTION)
        metrics = QFontMetrics(font)
        tag = QRect(
            0, inner.top(), metrics.horizontalAdvance(row.source) + Space.L, self._line(Type.UI)
        )
        tag.moveRight(inner.right())
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(colors.canvas if marked else colors.composer_chip))
        painter.drawRoundedRect(tag, tag.height() / 2, tag.height() / 2)
        painter.setFont(font)
        painter.setPen(QColor(colors.secondary))
        painter.drawText(tag, Qt.AlignmentFlag.AlignCenter, row.source)
        width = max(tag.width(), self._paint_state(painter, inner, row))
        return inner.right() - width - Space.M

    def _paint_state(self, painter: QPainter, inner: QRect, row: PickerRow) -> int:
        """Paint the state and its icon or progress bar. Return their width in px."""
        if not row.state:
            return 0
        colors = self._theme.colors
        font = self._theme.zoomed_font(Type.SMALL)
        painter.setFont(font)
        painter.setPen(QColor(colors.secondary))
        line = QRect(inner.left(), 0, inner.width(), self._line(Type.SMALL))
        line.moveTop(inner.top() + self._line(Type.UI) + Space.HAIR)
        align = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        painter.drawText(line, align, row.state)
        width = QFontMetrics(font).horizontalAdvance(row.state)
        if row.fraction is None and row.usable:
            size = self._theme.scaled(GRID)
            icon = QRectF(line.right() - width - size - Space.HAIR, line.top() - 1, size, size)
            self._theme.icons.paint(painter, Icon.CHECK, colors.secondary, icon)
            width += size
        elif row.fraction is not None:
            self._paint_bar(painter, line, width, row.fraction)
        return width

    def _paint_bar(self, painter: QPainter, line: QRect, width: int, fraction: float) -> None:
        bar = QRectF(0, line.bottom() + Space.HAIR, width, Space.XS)
        bar.moveRight(line.right())
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(self._theme.colors.track))
        painter.drawRoundedRect(bar, Space.HAIR, Space.HAIR)
        bar.setWidth(bar.width() * fraction)
        painter.setBrush(QColor(self._theme.colors.secondary))
        painter.drawRoundedRect(bar, Space.HAIR, Space.HAIR)

    def _text(self, painter: QPainter, rect: QRect, text: str, style: TextStyle, ink: str) -> None:
        font = self._theme.zoomed_font(style)
        painter.setFont(font)
        painter.setPen(QColor(ink))
        elided = QFontMetrics(font).elidedText(text, Qt.TextElideMode.ElideRight, rect.width())
        painter.drawText(rect, Qt.AlignmentFlag.AlignVCenter, elided)

    @override
    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        row = self._model.row_at(index)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        body = option.rect.adjusted(Space.XS, 0, -Space.XS, 0)
        if row.usable:
            paint_row_ground(painter, self._theme.colors, body, option.state)
        marked = row.usable and bool(option.state & _MARKED)
        self._paint_row(painter, body, row, marked=marked)
        painter.restore()

    @override
    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        row = self._model.row_at(index)
        height = self._line(Type.UI) + Space.HAIR + self._line(Type.SMALL) + 2 * _PADDING
        if row.sentence:
            height += round(self._sentence(row.sentence).size().height()) + Space.HAIR
        return QSize(0, height)
