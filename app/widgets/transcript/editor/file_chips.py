"""The chips of attached files above the text of the composer and of the editor. Main thread."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import QEvent, QPoint, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QContextMenuEvent,
    QFontMetricsF,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import QAbstractButton, QApplication, QFrame, QScrollArea, QWidget
from typing_extensions import override

from app.settings import PictureSize
from app.theme.icons import GRID, Icon
from app.theme.palette import Theme
from app.theme.tokens import Radius, Space, TextStyle, Type
from app.viewmodels.attachments import Chip
from app.widgets.icon_button import IconButton
from app.widgets.menu import Menu, pop_up
from app.widgets.menu_text import plain
from app.widgets.transcript.rows.picture_shelf import PictureShelf, WantedImage
from app.words import attachments as words

_WIDTH, _HEIGHT = 304, 44
_MIN_WIDTH = 160  # in a narrow editor
_MAX_ROWS = 3


class FileChip(QAbstractButton):
    """An attached file: icon or thumbnail, name, details, and a bar with the share that is read.

    Return opens the file, Delete removes it, Alt+Left and Alt+Right move it.
    """

    removed = Signal(int)  # argument: place of the chip
    opened = Signal(int)
    moved = Signal(int, int)  # arguments: place of the chip, new place
    resized = Signal(int, object)  # arguments: place of the chip, PictureSize
    dropped = Signal(int, QPoint)  # arguments: place of the chip, position in the parent

    def __init__(self, theme: Theme, pictures: PictureShelf, place: int, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._pictures = pictures
        self.place = place
        self.chip = Chip(name="", kind="")
        self._pressed_at: QPoint | None = None
        self._is_dragged = False
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.close_button = IconButton(theme, Icon.CLOSE, words.REMOVE, self)
        self.close_button.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.close_button.clicked.connect(lambda: self.removed.emit(self.place))
        self.size_button = IconButton(theme, Icon.CHEVRON_DOWN, words.SIZE, self)
        self.size_button.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.size_button.clicked.connect(self._open_sizes)
        self.size_button.hide()
        pictures.arrived.connect(self.update)
        self.clicked.connect(lambda: self.opened.emit(self.place))
        theme.changed.connect(self.update)

    def show_chip(self, chip: Chip) -> None:
        if chip == self.chip:
            return
        self.chip = chip
        self.setToolTip(chip.tip)
        name = words.picture_name(chip.name) if chip.picture else chip.name
        self.setAccessibleName(f"{name}, {chip.details}" if chip.details else name)
        self.size_button.setVisible(bool(chip.sizes))
        self._place_buttons()
        self.update()

    @override
    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self.update()  # Qt does not repaint a button that loses its hover to an open menu

    @override
    def paintEvent(self, e: QPaintEvent) -> None:
        colors, chip = self._theme.colors, self.chip
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box = QRectF(self.rect()).adjusted(1, 1, -1, -1)
        focused = self.hasFocus()
        painter.setPen(
            QPen(QColor(colors.accent if focused else colors.border), 2 if focused else 1)
        )
        painter.setBrush(QColor(colors.hover if self.underMouse() else colors.canvas))
        painter.drawRoundedRect(box, Radius.CODE, Radius.CODE)
        left = self._paint_picture(painter) if chip.picture else self._paint_icon(painter)
        end = self.close_button if self.size_button.isHidden() else self.size_button
        width = end.x() - left
        scale = self.height() / _HEIGHT
        name = QRectF(left, 5 * scale, width, 18 * scale)
        details = QRectF(left, 22 * scale, width, 16 * scale)
        self._paint_line(painter, Type.UI, colors.text, name, chip.name)
        self._paint_line(painter, Type.SMALL, colors.secondary, details, chip.details)
        if chip.share is not None and 0 < chip.share < 1:
            self._paint_bar(painter, box, chip.share)

    def _paint_icon(self, painter: QPainter) -> float:
        """Paint the icon of a file. Return the x coordinate of the text."""
        size = self._theme.scaled(GRID)
        icon = QRectF(Space.M, (self.height() - size) / 2, size, size)
        self._theme.icons.paint(painter, Icon.FILE, self._theme.colors.secondary, icon)
        return icon.right() + Space.S

    def _paint_picture(self, painter: QPainter) -> float:
        """Paint the thumbnail of a picture. Return the x coordinate of the text."""
        assert self.chip.picture is not None
        inset = Space.HAIR
        side = self.height() - 2 * inset
        rect = QRectF(inset, inset, side, side)
        ratio = self.devicePixelRatioF()
        dots = round(side * ratio)
        wanted = WantedImage(self.chip.picture, dots, dots, round((Radius.CODE - inset) * ratio))
        image = self._pictures.find(wanted)
        if image is not None:
            painter.drawImage(rect, image)
        else:
            size = self._theme.scaled(GRID)
            sign = Icon.WARNING if self._pictures.is_missing(wanted) else Icon.PICTURE
            icon = QRectF(0, 0, size, size)
            icon.moveCenter(rect.center())
            self._theme.icons.paint(painter, sign, self._theme.colors.secondary, icon)
        return rect.right() + Space.S

    def _paint_line(
        self, painter: QPainter, style: TextStyle, color: str, rect: QRectF, text: str
    ) -> None:
        font = self._theme.zoomed_font(style)
        painter.setFont(font)
        painter.setPen(QColor(color))
        # The end of a file's name tells its kind.
        mode = Qt.TextElideMode.ElideMiddle if style is Type.UI else Qt.TextElideMode.ElideRight
        shown = QFontMetricsF(font).elidedText(text, mode, rect.width())
        painter.drawText(rect, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, shown)

    def _paint_bar(self, painter: QPainter, box: QRectF, share: float) -> None:
        colors = self._theme.colors
        line = QRectF(box.left() + Space.M, box.bottom() - 4, box.width() - 2 * Space.M, 2)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(colors.hairline))
        painter.drawRoundedRect(line, 1, 1)
        line.setWidth(line.width() * share)
        painter.setBrush(QColor(colors.accent))
        painter.drawRoundedRect(line, 1, 1)

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place_buttons()

    def _place_buttons(self) -> None:
        right = self.width() - Space.S + Space.XS
        for button in (self.close_button, self.size_button):
            right -= button.width()
            button.move(right, (self.height() - button.height()) // 2)

    def _open_sizes(self) -> None:
        """Open the menu of the sizes below its button."""
        menu = Menu(self)
        self._add_sizes(menu)
        pop_up(menu, self.size_button.mapToGlobal(self.size_button.rect().bottomLeft()))

    def _add_sizes(self, menu: Menu) -> None:
        """Add the sizes that the picture can have, with their prices."""
        for choice in self.chip.sizes:
            action = menu.addAction(plain(choice.label))
            action.setCheckable(True)
            action.setChecked(choice.is_chosen)
            action.triggered.connect(partial(self._choose_size, choice.size))

    def _choose_size(self, size: PictureSize, *_checked: object) -> None:
        self.resized.emit(self.place, size)

    @override
    def keyPressEvent(self, e: QKeyEvent) -> None:
        steps = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}
        if e.key() in (Qt.Key.Key_Delete, Qt.Key.Key_Backspace):
            self.removed.emit(self.place)
        elif e.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.opened.emit(self.place)
        elif e.modifiers() & Qt.KeyboardModifier.AltModifier and e.key() in steps:
            self.moved.emit(self.place, self.place + steps[Qt.Key(e.key())])
        else:
            super().keyPressEvent(e)

    @override
    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        menu, place = Menu(self), self.place
        if not self.chip.is_opening:
            menu.addAction(words.OPEN, lambda: self.opened.emit(place))
            if self.chip.sizes:
                menu.addSection(words.SIZE)
                self._add_sizes(menu)
                menu.addSeparator()
            menu.addAction(words.MOVE_LEFT, lambda: self.moved.emit(place, place - 1))
            menu.addAction(words.MOVE_RIGHT, lambda: self.moved.emit(place, place + 1))
        menu.addAction(words.REMOVE, lambda: self.removed.emit(place))
        pop_up(menu, event.globalPos())

    @override
    def mousePressEvent(self, e: QMouseEvent) -> None:
        super().mousePressEvent(e)
        self._pressed_at, self._is_dragged = e.position().toPoint(), False

    @override
    def mouseMoveEvent(self, e: QMouseEvent) -> None:
        super().mouseMoveEvent(e)
        if self._pressed_at is None or self.chip.is_opening:
            return
        moved = e.position().toPoint() - self._pressed_at
        if moved.manhattanLength() >= QApplication.startDragDistance():
            self._is_dragged = True
            self.raise_()
        if self._is_dragged:
            self.move(self.pos() + moved)

    @override
    def mouseReleaseEvent(self, e: QMouseEvent) -> None:
        was_dragged, self._pressed_at = self._is_dragged, None
        self._is_dragged = False
        if was_dragged:
            self.setDown(False)
            self.dropped.emit(self.place, self.geometry().center())
        else:
            super().mouseReleaseEvent(e)


class FileChips(QScrollArea):
    """The chips of a draft, in rows. More than a few rows scroll. Hidden without files."""

    removed = Signal(int)  # argument: place of a chip
    opened = Signal(int)
    moved = Signal(int, int)  # arguments: place of a chip, new place
    resized = Signal(int, object)  # arguments: place of a chip, PictureSize

    def __init__(self, theme: Theme, pictures: PictureShelf, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._pictures = pictures
        self._chips: list[FileChip] = []
        self._room = 0  # height that the rows may take
        self._inner = QWidget(self)
        self.setWidget(self._inner)
        self.setFrameShape(QFrame.Shape.NoFrame)
        # The box of the composer paints the background.
        self._inner.setAutoFillBackground(False)
        self.viewport().setAutoFillBackground(False)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setAccessibleName(words.ATTACHED)
        self.hide()
        theme.zoomed.connect(self._place)

    @property
    def chips(self) -> list[FileChip]:
        return self._chips

    def set_room(self, height: int) -> None:
        """Set the height that the rows may take. One row is always shown."""
        if height != self._room:
            self._room = height
            self._place()

    def show_chips(self, chips: Sequence[Chip]) -> None:
        """Show these chips. A chip widget stays if only its content changes."""
        count = len(self._chips)
        for place in range(count, len(chips)):
            self._chips.append(self._make(place))
        for widget in self._chips[len(chips) :]:
            widget.hide()
            widget.deleteLater()
        del self._chips[len(chips) :]
        for widget, chip in zip(self._chips, chips, strict=True):
            widget.show_chip(chip)
        self.setVisible(bool(chips))
        if len(chips) != count:
            self._place()

    def _make(self, place: int) -> FileChip:
        chip = FileChip(self._theme, self._pictures, place, self._inner)
        chip.removed.connect(self._on_removed)
        chip.opened.connect(self.opened)
        chip.moved.connect(self._on_moved)
        chip.resized.connect(self.resized)
        chip.dropped.connect(self._on_dropped)
        chip.show()
        return chip

    def _on_removed(self, place: int) -> None:
        had_focus = self._chips[place].hasFocus()
        self.removed.emit(place)
        if had_focus and self._chips:
            self._chips[min(place, len(self._chips) - 1)].setFocus()

    def _on_moved(self, place: int, to: int) -> None:
        had_focus = self._chips[place].hasFocus()
        self.moved.emit(place, to)
        if had_focus and 0 <= to < len(self._chips):
            self._chips[to].setFocus()

    def _on_dropped(self, place: int, at: QPoint) -> None:
        room = self.viewport().width()
        rects = [self._rect(i, room) for i in range(len(self._chips))]
        near = min(range(len(rects)), key=lambda i: (rects[i].center() - at).manhattanLength())
        self._place()
        self.moved.emit(place, near)

    @property
    def natural_width(self) -> int:
        """Width of the row of all chips, in pixels; 0 without chips."""
        width = round(_WIDTH * max(1.0, self._theme.zoom))
        return len(self._chips) * (width + Space.S)

    def height_in(self, room: int) -> int:
        """Return the height in a width, with the space below; 0 without chips."""
        if not self._chips:
            return 0
        last = self._rect(len(self._chips) - 1, room)
        row = last.height() + Space.S
        num_rows = max(1, min(_MAX_ROWS, self._room // row))
        height, most = last.bottom() + 1, num_rows * row
        if num_rows > 1 and height > most:
            most -= row // 2  # a row that is cut shows that there are more
        # The space below separates the chips from the text.
        return min(height + Space.S, most)

    def _rect(self, place: int, room: int) -> QRect:
        scale = max(1.0, self._theme.zoom)
        width = min(round(_WIDTH * scale), max(_MIN_WIDTH, room))
        height = round(_HEIGHT * scale)
        column = max(1, (room + Space.S) // (width + Space.S))
        row, at = divmod(place, column)
        return QRect(at * (width + Space.S), row * (height + Space.S), width, height)

    def _place(self) -> None:
        if not self._chips:
            return
        room = self.viewport().width()
        for place, chip in enumerate(self._chips):
            chip.setGeometry(self._rect(place, room))
        self._inner.resize(room, self._rect(len(self._chips) - 1, room).bottom() + 1)
        self.setFixedHeight(self.height_in(room))

    @override
    def sizeHint(self) -> QSize:
        return QSize(_WIDTH, self.height())

    @override
    def resizeEvent(self, arg__1: QResizeEvent) -> None:
        super().resizeEvent(arg__1)
        self._place()
