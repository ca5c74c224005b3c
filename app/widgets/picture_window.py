"""The window that shows one picture of a message, fitted to the window or in its own size."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QGuiApplication,
    QImage,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
)
from PySide6.QtWidgets import QFrame, QHBoxLayout, QScrollArea, QVBoxLayout, QWidget
from typing_extensions import override

from app.conversation.attachments import AttachedPicture, Attachment
from app.theme.palette import Theme
from app.theme.tokens import Space, Type
from app.widgets.button import Button
from app.widgets.own_windows import OwnWindow
from app.widgets.transcript.rows.picture_shelf import PictureShelf
from app.widgets.window_size import within_screen
from app.words import attachments as words

_LEAST = QSize(360, 240)
_USUAL = QSize(960, 720)
_BUTTONS = 48  # height of the row of buttons


class PictureWindow(OwnWindow):
    """A picture, once the shelf has read it.

    A click or Space changes between fitted and actual size. Esc closes the window.
    """

    save_requested = Signal(object)  # argument: the Attachment

    def __init__(
        self, theme: Theme, pictures: PictureShelf, attachment: Attachment, parent: QWidget
    ) -> None:
        super().__init__(parent, Qt.WindowType.Window)
        assert attachment.picture is not None
        self._attachment = attachment
        self.setObjectName("picture")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(attachment.name)
        self.canvas = PictureCanvas(theme, self)
        self.canvas.setAccessibleName(words.picture_name(attachment.name))
        self._area = QScrollArea(self)
        self.zoom_button = Button(words.ACTUAL_SIZE, self)
        self.copy_button = Button(words.COPY, self)
        self.save_button = Button(words.SAVE_AS, self)
        self._build()
        picture = attachment.picture
        self.resize(within_screen(self, _window_size(picture.width, picture.height)))
        pictures.whole_read.connect(self._on_read)

    def _build(self) -> None:
        area, canvas = self._area, self.canvas
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setWidgetResizable(True)
        area.setWidget(canvas)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        row = QHBoxLayout()
        row.setContentsMargins(Space.M, Space.S, Space.M, Space.S)
        row.setSpacing(Space.S)
        row.addWidget(self.zoom_button)
        row.addStretch()
        row.addWidget(self.copy_button)
        row.addWidget(self.save_button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(area, 1)
        layout.addLayout(row)
        self.setMinimumSize(_LEAST)
        self.zoom_button.clicked.connect(self.toggle_zoom)
        canvas.clicked.connect(self.toggle_zoom)
        self.copy_button.clicked.connect(self._copy)
        self.save_button.clicked.connect(partial(self.save_requested.emit, self._attachment))
        canvas.setFocus()

    def toggle_zoom(self) -> None:
        """Show the picture in its own size, or fitted to the window again."""
        canvas = self.canvas
        canvas.fits = not canvas.fits
        self.zoom_button.setText(words.ACTUAL_SIZE if canvas.fits else words.FIT)
        canvas.setMinimumSize(QSize(0, 0) if canvas.fits else canvas.image_size)
        canvas.update()

    def _on_read(self, picture: AttachedPicture, image: QImage | None) -> None:
        if picture == self._attachment.picture:
            self.canvas.show_image(image)
            for button in (self.zoom_button, self.copy_button):
                button.setEnabled(image is not None)

    def _copy(self) -> None:
        if self.canvas.image is not None:
            QGuiApplication.clipboard().setImage(self.canvas.image)

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Space:
            self.toggle_zoom()
        else:
            super().keyPressEvent(event)


class PictureCanvas(QWidget):
    """The picture in the middle, fitted to the widget or in its own size."""

    clicked = Signal()

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self.image: QImage | None = None
        self._is_missing = False
        self.fits = True  # False: the picture has its own size
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        theme.changed.connect(self.update)

    @property
    def image_size(self) -> QSize:
        return QSize(0, 0) if self.image is None else self.image.size()

    def show_image(self, image: QImage | None) -> None:
        """Show the picture. None: its file is missing or damaged."""
        self.image, self._is_missing = image, image is None
        self.setAccessibleDescription(words.PICTURE_MISSING if self._is_missing else "")
        self.update()

    def place(self) -> QRectF:
        """Return the place of the picture in the widget."""
        size = self.image_size
        if self.fits and not size.isEmpty():
            fitted = size.scaled(self.size(), Qt.AspectRatioMode.KeepAspectRatio)
            size = fitted.boundedTo(size)  # a small picture is not made larger
        left, top = (self.width() - size.width()) / 2, (self.height() - size.height()) / 2
        return QRectF(max(0.0, left), max(0.0, top), size.width(), size.height())

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        colors = self._theme.colors
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(colors.canvas))
        if self.image is not None:
            painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
            painter.drawImage(self.place(), self.image)
        elif self._is_missing:
            painter.setFont(self._theme.zoomed_font(Type.UI))
            painter.setPen(QColor(colors.secondary))
            painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, words.PICTURE_MISSING)

    @override
    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if event.button() is Qt.MouseButton.LeftButton and self.image is not None:
            self.clicked.emit()


def _window_size(width: int, height: int) -> QSize:
    """Return the usual size of the window of a picture, with room for its buttons."""
    fitted = QSize(width, height).boundedTo(_USUAL)
    shown = QSize(width, height).scaled(fitted, Qt.AspectRatioMode.KeepAspectRatio)
    return QSize(shown.width(), shown.height() + _BUTTONS).expandedTo(_LEAST)
