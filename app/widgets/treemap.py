"""The painted map of chats in memory and on disk. Main thread."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from PySide6.QtCore import QEvent, QPointF, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontMetricsF,
    QHelpEvent,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPainterPath,
    QPaintEvent,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget
from typing_extensions import override

from app.theme.palette import Theme
from app.theme.tokens import Size, Space, StateInk, Type
from app.viewmodels.memory_map import Area, MapRow, MapState, areas
from app.words import memory_map as words

_GAP = 1.0  # half of the space between two areas, in px
_CORNER = 4.0
_LEAST_CHARS = 5  # a part with room for fewer gets no text
_Font = tuple[QFont, QFontMetricsF]
_ARROWS = {
    Qt.Key.Key_Left: QPointF(-1, 0),
    Qt.Key.Key_Right: QPointF(1, 0),
    Qt.Key.Key_Up: QPointF(0, -1),
    Qt.Key.Key_Down: QPointF(0, 1),
}


class Treemap(QWidget):
    """One area per part. A click selects a chat, a double click opens it, arrow keys move.

    Screen readers get the current part as the description; the table has all parts.
    """

    chosen = Signal(object)  # argument: frozenset of the keys that the user has selected
    opened = Signal(str)  # argument: key of the part
    pointed = Signal(str)  # argument: key of the part under the pointer, or ""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._rows: list[MapRow] = []
        self._rects: list[QRectF] = []
        self._selected: frozenset[str] = frozenset()
        self._current = ""  # key of the part that the keys move from
        self._hovered = ""
        self._fonts = self._make_fonts()
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setAccessibleName(words.MAP)
        theme.changed.connect(self.update)
        theme.zoomed.connect(self.update)

    def show_rows(self, rows: Sequence[MapRow], selected: frozenset[str]) -> None:
        """Show parts, the largest first."""
        rows = [row for row in rows if row.nbytes]
        if rows != self._rows:
            self._rows = rows
            self._arrange()
            self.update()
        self._update(self._selected ^ selected)
        self._selected = selected
        if not any(row.key == self._current for row in rows):
            self._current = ""
        self._describe()

    def _update(self, keys: Collection[str]) -> None:
        """Paint these parts again, and no others."""
        for row, rect in zip(self._rows, self._rects, strict=True):
            if row.key in keys:
                self.update(rect.toAlignedRect())

    def rect_of(self, key: str) -> QRect:
        """Return the place of a part."""
        return next(
            rect.toRect()
            for row, rect in zip(self._rows, self._rects, strict=True)
            if row.key == key
        )

    def _arrange(self) -> None:
        whole = Area(0, 0, self.width(), self.height())
        found = areas([row.nbytes for row in self._rows], whole)
        self._rects = [QRectF(one.x, one.y, one.width, one.height) for one in found]
        self._rects += [QRectF()] * (len(self._rows) - len(self._rects))

    def _at(self, place: QPointF) -> MapRow | None:
        for row, rect in zip(self._rows, self._rects, strict=True):
            if rect.contains(place):
                return row
        return None

    def _describe(self) -> None:
        row = next((row for row in self._rows if row.key == self._current), None)
        self.setAccessibleDescription("" if row is None else row.line)

    # Mouse and keys

    def _choose(self, row: MapRow, *, adds: bool) -> None:
        self._go_to(row)
        if not row.is_chat:
            chosen = self._selected if adds else frozenset[str]()
        else:
            chosen = self._selected ^ {row.key} if adds else frozenset({row.key})
        self.chosen.emit(chosen)

    def _go_to(self, row: MapRow) -> None:
        """Make a part the one that the keys move from."""
        self._update({self._current, row.key})
        self._current = row.key
        self._describe()

    @override
    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() is not Qt.MouseButton.LeftButton:
            return
        row = self._at(event.position())
        adding = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
        if row is not None:
            self._choose(row, adds=bool(event.modifiers() & adding))
        else:
            self.chosen.emit(frozenset())

    @override
    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        row = self._at(event.position())
        if row is not None and event.button() is Qt.MouseButton.LeftButton:
            self.opened.emit(row.key)

    @override
    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        row = self._at(event.position())
        self._point("" if row is None else row.key)

    @override
    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._point("")

    def _point(self, key: str) -> None:
        if key != self._hovered:
            self._update({self._hovered, key})
            self._hovered = key
            self.pointed.emit(key)

    @override
    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() is QEvent.Type.ToolTip:
            row = self._at(QPointF(event.pos()))
            QToolTip.showText(event.globalPos(), "" if row is None else row.line, self)
            return True
        return super().event(event)

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = Qt.Key(event.key())
        current = next((row for row in self._rows if row.key == self._current), None)
        if event.matches(QKeySequence.StandardKey.SelectAll):
            self.chosen.emit(frozenset(row.key for row in self._rows if row.is_chat))
        elif key in _ARROWS and self._rows:
            extends = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
            self._move(current, _ARROWS[key], extends=extends)
        elif key is Qt.Key.Key_Space and current is not None:
            self._choose(current, adds=True)
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and current is not None:
            self.opened.emit(current.key)
        else:
            super().keyPressEvent(event)

    def _move(self, current: MapRow | None, step: QPointF, *, extends: bool) -> None:
        """Go to the nearest part in a direction, or to the largest one at first."""
        target = self._rows[0] if current is None else self._nearest(current, step)
        if target is None:
            return
        if extends and target.key in self._selected:
            self._go_to(target)
        else:
            self._choose(target, adds=extends)

    def _nearest(self, current: MapRow, step: QPointF) -> MapRow | None:
        start = self._rects[self._rows.index(current)]
        best, best_length = None, 0.0
        for row, rect in zip(self._rows, self._rects, strict=True):
            if row is current:
                continue
            if step.x():
                ahead = rect.left() - start.right() if step.x() > 0 else start.left() - rect.right()
                aside = abs(rect.center().y() - start.center().y())
                touches = rect.top() < start.bottom() and rect.bottom() > start.top()
            else:
                ahead = rect.top() - start.bottom() if step.y() > 0 else start.top() - rect.bottom()
                aside = abs(rect.center().x() - start.center().x())
                touches = rect.left() < start.right() and rect.right() > start.left()
            if ahead < -1:
                continue
            length = max(0.0, ahead) + (aside / 8 if touches else aside * 4)
            if best is None or length < best_length:
                best, best_length = row, length
        return best

    # Painting

    @override
    def sizeHint(self) -> QSize:
        return QSize(Size.MODELS_WIDTH - 2 * Space.XL, 240)

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._fonts = self._make_fonts()
        for row, rect in zip(self._rows, self._rects, strict=True):
            if rect.intersects(QRectF(event.rect())):
                self._paint(painter, row, rect.adjusted(_GAP, _GAP, -_GAP, -_GAP))

    def _make_fonts(self) -> tuple[_Font, _Font]:
        """Return the fonts of titles and of figures. Their metrics take time to make."""
        title, small = (self._theme.zoomed_font(style) for style in (Type.LABEL, Type.SMALL))
        return (title, QFontMetricsF(title)), (small, QFontMetricsF(small))

    def _paint(self, painter: QPainter, row: MapRow, rect: QRectF) -> None:
        colors, ink = self._theme.colors, self._ink(row)
        is_selected = row.key in self._selected
        outline = QPainterPath()
        outline.addRoundedRect(rect.adjusted(0.5, 0.5, -0.5, -0.5), _CORNER, _CORNER)
        painter.fillPath(outline, QColor(colors.accent if is_selected else ink.tint))
        if row.memory_bytes and row.disk_bytes and row.is_chat and not is_selected:
            # The lower part has the share of the bytes on disk.
            lower = QRectF(rect)
            lower.setTop(rect.bottom() - rect.height() * row.disk_bytes / row.nbytes)
            painter.save()
            painter.setClipPath(outline)
            painter.fillRect(lower, QColor(colors.on_disk.tint))
            painter.setPen(QPen(QColor(colors.on_disk.ink), 1))  # the tints alone hardly differ
            painter.drawLine(lower.topLeft(), lower.topRight())
            painter.restore()
        is_hovered = row.key == self._hovered
        painter.strokePath(outline, QPen(QColor(ink.ink if is_hovered else colors.strong_line), 1))
        if self.hasFocus() and row.key == self._current:
            ring = QPainterPath()
            ring.addRoundedRect(rect.adjusted(2, 2, -2, -2), _CORNER, _CORNER)
            painter.strokePath(
                ring, QPen(QColor(colors.on_accent if is_selected else colors.accent), 3)
            )
        written = QColor(colors.on_accent if is_selected else ink.ink)
        self._write(painter, row, rect.adjusted(Space.S, Space.XS, -Space.S, -Space.XS), written)

    def _write(self, painter: QPainter, row: MapRow, rect: QRectF, ink: QColor) -> None:
        """Write the title and the figures, as far as there is room."""
        title, small = self._fonts
        if rect.width() < _LEAST_CHARS * small[1].averageCharWidth():
            return
        painter.setPen(ink)
        y = rect.top()
        texts = ((title, row.title), *((small, text) for text in row.texts))
        for (font, metrics), text in texts:
            if y + metrics.height() > rect.bottom():
                return
            painter.setFont(font)
            shown = metrics.elidedText(text, Qt.TextElideMode.ElideRight, rect.width())
            painter.drawText(QPointF(rect.left(), y + metrics.ascent()), shown)
            y += metrics.height() + 2

    def _ink(self, row: MapRow) -> StateInk:
        colors = self._theme.colors
        match row.state:
            case MapState.ACTIVE:
                return colors.must_read
            case MapState.MEMORY:
                return colors.instant
            case MapState.DISK:
                return colors.on_disk
            case MapState.UNREAD | MapState.OTHER:
                return StateInk(colors.secondary, colors.composer_chip)
