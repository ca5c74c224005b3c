"""Painting of the rows of the conversation list, and editing of titles and names in a row."""

from __future__ import annotations

from PySide6.QtCore import (
    QEvent,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QPoint,
    QPointF,
    QRect,
    QRectF,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QColor, QFont, QFontMetrics, QMouseEvent, QPainter, QPen
from PySide6.QtWidgets import (
    QAbstractItemView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)
from typing_extensions import override

from app.conversation.placement import FolderId
from app.theme.icons import GRID, Icon
from app.theme.palette import Theme
from app.theme.tokens import Radius, Size, Space, Type
from app.viewmodels.chat_state import ChatState
from app.viewmodels.conversations import ConversationRow, ConversationsModel, FolderRow, ListHeading
from app.viewmodels.direction import isolated
from app.widgets.elided_title import elided_title
from app.widgets.fields import LineField
from app.widgets.row_painting import paint_row_ground
from app.words import window as words

Index = QModelIndex | QPersistentModelIndex

_RING = 1.5  # width in pixels of the ring of a state


class ConversationDelegate(QStyledItemDelegate):
    """The item delegate of the conversation list.

    A row shows the title at the left. At the right it shows one of these, the first that applies:

    - the menu button, while the pointer is over the row
    - the speed of a running answer
    - a dot for an unseen answer
    - a bolt for a conversation that is kept in memory
    - the place of its cached state: a dot for memory, a ring for the disk, a dotted ring for none

    The row of a folder shows an arrow, the folder in its colour, its name, the place of the state
    of its documents if it has some, and its number of chats.
    """

    # arguments: model index of the row, rectangle of the menu button
    menu_requested = Signal(object, QRect)

    def __init__(self, theme: Theme, model: ConversationsModel, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._model = model
        # False after a click: only keys show which row has the focus
        self.shows_focus = False
        # The folder into which dragged conversations would be dropped. It has an outline.
        self.aim: FolderId | None = None

    def is_menu_at(self, view: QAbstractItemView, at: QPoint) -> bool:
        """Return True if a position in the viewport is on the menu button of a row."""
        index = view.indexAt(at)
        if not index.isValid() or isinstance(self._model.row_at(index), ListHeading):
            return False
        return _reach(view.visualRect(index), self._icon_size).contains(at)

    @property
    def _icon_size(self) -> int:
        return self._theme.scaled(GRID)

    @property
    def _indent(self) -> int:
        """The indentation of titles in a folder. They begin below the name of the folder."""
        return 2 * self._icon_size - Space.HAIR

    def _paint_heading(self, painter: QPainter, rect: QRect, heading: ListHeading) -> None:
        painter.setFont(self._theme.zoomed_font(Type.SECTION))
        painter.setPen(QColor(self._theme.colors.tertiary))
        inner = _inner(_body(rect)).adjusted(0, 0, 0, -Space.XS)
        painter.drawText(
            inner, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignBottom, heading.text
        )

    def _paint_ground(self, painter: QPainter, option: QStyleOptionViewItem) -> QRect:
        """Paint the background of a row, and return the rectangle for its content."""
        body = _body(option.rect)
        hidden = QStyle.StateFlag(0) if self.shows_focus else QStyle.StateFlag.State_HasFocus
        paint_row_ground(painter, self._theme.colors, body, option.state & ~hidden)
        return _inner(body)

    def _paint_folder(
        self, painter: QPainter, option: QStyleOptionViewItem, row: FolderRow
    ) -> None:
        colors, icons = self._theme.colors, self._theme.icons
        rect = self._paint_ground(painter, option)
        if row.folder_id == self.aim:
            self._paint_aim(painter, option.rect)
        arrow = Icon.CHEVRON_DOWN_SMALL if row.is_open else Icon.CHEVRON_RIGHT_SMALL
        size = self._icon_size
        place = QRectF(rect.left() - Space.S, 0, size, size)
        place.moveCenter(QPointF(place.center().x(), rect.center().y() + 0.5))
        icons.paint(painter, arrow, colors.secondary, place)
        place.moveLeft(place.right() - Space.HAIR)
        icons.paint(painter, Icon.FOLDER, getattr(colors.folder, row.color), place)
        rect.setLeft(round(place.right()) + Space.S)
        if option.state & QStyle.StateFlag.State_MouseOver:
            icon = _menu_rect(rect, self._icon_size)
            icons.paint(painter, Icon.MORE, colors.secondary, QRectF(icon))
            rect.setRight(icon.left() - Space.S)
        elif row.count:
            painter.setFont(self._theme.zoomed_font(Type.CAPTION))
            painter.setPen(QColor(colors.tertiary))
            number = f"{row.count:,}"
            painter.drawText(
                rect, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, number
            )
            taken = QFontMetrics(painter.font()).horizontalAdvance(number)
            rect.setRight(rect.right() - taken - Space.S)
        mark = self._model.mark_of(row.folder_id)
        if mark is not None:
            dot = _end_square(rect, self._theme.scaled(Size.STATE_DOT))
            self._paint_state(painter, dot, mark.state, colors.tertiary)
            rect.setRight(int(dot.left()) - Space.S)
        self._paint_text(painter, rect, row.name, self._theme.zoomed_font(Type.LABEL))

    def _paint_state(
        self, painter: QPainter, dot: QRectF, state: ChatState | None, quiet: str
    ) -> None:
        colors = self._theme.colors
        if state is ChatState.MEMORY:
            _paint_dot(painter, dot, colors.instant.ink)
        elif state is ChatState.DISK:
            _paint_ring(painter, dot, colors.on_disk.ink, Qt.PenStyle.SolidLine)
        else:
            _paint_ring(painter, dot, quiet, Qt.PenStyle.DotLine)

    def _paint_aim(self, painter: QPainter, rect: QRect) -> None:
        painter.setPen(QPen(QColor(self._theme.colors.accent), Space.HAIR))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        ring = QRectF(_body(rect)).adjusted(1, 1, -1, -1)
        painter.drawRoundedRect(ring, Radius.ROW - 1, Radius.ROW - 1)

    def _paint_text(self, painter: QPainter, rect: QRect, text: str, font: QFont) -> None:
        painter.setFont(font)
        painter.setPen(QColor(self._theme.colors.text))
        shown = elided_title(QFontMetrics(font), text, rect.width())
        painter.drawText(rect, Qt.AlignmentFlag.AlignVCenter, isolated(shown))

    def _paint_row(
        self, painter: QPainter, option: QStyleOptionViewItem, row: ConversationRow
    ) -> None:
        text_rect = self._paint_ground(painter, option)
        if row.folder_id is not None:
            text_rect.setLeft(text_rect.left() + self._indent)
        text_rect.setRight(self._paint_end(painter, text_rect, row, option.state))
        font = self._theme.zoomed_font(Type.UI)
        font.setBold(row.unseen)
        self._paint_text(painter, text_rect, row.title, font)

    def _paint_end(
        self, painter: QPainter, rect: QRect, row: ConversationRow, state: QStyle.StateFlag
    ) -> int:
        """Paint the menu button, speed, dot or bolt. Return the x at which the title must end."""
        colors = self._theme.colors
        selected = state & QStyle.StateFlag.State_Selected
        quiet = colors.secondary if selected else colors.tertiary
        if state & QStyle.StateFlag.State_MouseOver:
            icon = _menu_rect(rect, self._icon_size)
            self._theme.icons.paint(painter, Icon.MORE, colors.secondary, QRectF(icon))
            return icon.left() - Space.S
        if row.activity:
            font = self._theme.zoomed_font(Type.CAPTION)
            painter.setFont(font)
            painter.setPen(QColor(colors.instant.ink if row.is_written else quiet))
            align = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight
            painter.drawText(rect, align, row.activity)
            return rect.right() - QFontMetrics(font).horizontalAdvance(row.activity) - Space.S
        if row.keep_ready and not row.unseen:
            mark = _end_square(rect, self._theme.scaled(Space.M))
            self._theme.icons.paint(painter, Icon.BOLT, colors.secondary, mark)
            return int(mark.left()) - Space.S
        chat_state = self._model.state_of(row.conversation_id)
        if not row.unseen and chat_state is None:
            return rect.right()
        dot = _end_square(rect, self._theme.scaled(Size.STATE_DOT))
        if row.unseen:
            _paint_dot(painter, dot, colors.accent)
        else:
            self._paint_state(painter, dot, chat_state, quiet)
        return int(dot.left()) - Space.S

    @override
    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        row = self._model.row_at(index)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if isinstance(row, ListHeading):
            self._paint_heading(painter, option.rect, row)
        elif isinstance(row, FolderRow):
            self._paint_folder(painter, option, row)
        else:
            self._paint_row(painter, option, row)
        painter.restore()

    @override
    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        is_first = index.row() == 0  # the first heading needs no space above it
        height = Size.CONTROL_MINI if is_first else Size.ROW + Space.HAIR
        return QSize(0, round(height * max(1.0, self._theme.zoom)))

    @override
    def createEditor(self, parent: QWidget, option: QStyleOptionViewItem, index: Index) -> QWidget:
        editor = LineField(parent)
        editor.setFont(self._theme.zoomed_font(Type.UI))
        editor.setAccessibleName(words.TITLE_FIELD)
        editor.setMaxLength(200)
        return editor

    @override
    def setEditorData(self, editor: QWidget, index: Index) -> None:
        """Load the title into the editor, unless the user has already changed the editor's text.

        Qt also calls this method when the row changes while its editor is open.
        """
        assert isinstance(editor, LineField)
        if not editor.isModified() and editor.text() != index.data():
            super().setEditorData(editor, index)

    @override
    def eventFilter(self, object: QObject, event: QEvent) -> bool:
        """Let Return and Esc end editing, unless the input method is composing text."""
        if isinstance(object, LineField) and object.is_input_methods(event):
            return False
        return super().eventFilter(object, event)

    @override
    def updateEditorGeometry(
        self, editor: QWidget, option: QStyleOptionViewItem, index: Index
    ) -> None:
        # With these margins the text of the editor lies exactly over the painted title.
        row = self._model.row_at(index)
        left = 1
        if isinstance(row, FolderRow | ConversationRow) and row.folder_id is not None:
            left += self._indent
        editor.setGeometry(_body(option.rect).adjusted(left, 3, -1, -3))

    @override
    def editorEvent(
        self,
        event: QEvent,
        model: object,
        option: QStyleOptionViewItem,
        index: Index,
    ) -> bool:
        if (
            isinstance(event, QMouseEvent)
            and event.type() is QEvent.Type.MouseButtonPress
            and event.button() == Qt.MouseButton.LeftButton
            and not isinstance(self._model.row_at(index), ListHeading)
            and _reach(option.rect, self._icon_size).contains(event.position().toPoint())
        ):
            self.menu_requested.emit(index, _menu_rect(_inner(_body(option.rect)), self._icon_size))
            return True
        return False


def _end_square(rect: QRect, side: float) -> QRectF:
    """Return a square at the right end of a row."""
    square = QRectF(0, 0, side, side)
    square.moveCenter(QRectF(rect).center())
    square.moveRight(rect.right())
    return square


def _paint_dot(painter: QPainter, dot: QRectF, color: str) -> None:
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(QColor(color))
    painter.drawEllipse(dot)


def _paint_ring(painter: QPainter, dot: QRectF, color: str, style: Qt.PenStyle) -> None:
    painter.setPen(QPen(QColor(color), _RING, style))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawEllipse(dot.adjusted(_RING / 2, _RING / 2, -_RING / 2, -_RING / 2))


def _reach(rect: QRect, size: int) -> QRect:
    """Return the area of a row in which a click opens the menu."""
    target = _menu_rect(_inner(_body(rect)), size)
    return target.adjusted(-Space.XS, -Space.XS, Space.XS, Space.XS)


def _body(rect: QRect) -> QRect:
    return rect.adjusted(Space.S, 1, -Space.S, -1)


def _inner(body: QRect) -> QRect:
    return body.adjusted(Space.M, 0, -Space.M, 0)


def _menu_rect(rect: QRect, size: int) -> QRect:
    target = QRect(0, 0, size, size)
    target.moveCenter(rect.center())
    target.moveRight(rect.right())
    return target
