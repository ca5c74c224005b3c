"""The text field of the composer: plain text that grows from one to ten lines, then scrolls."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import cast

from PySide6.QtCore import QEvent, QMimeData, Qt, Signal
from PySide6.QtGui import (
    QDragEnterEvent,
    QFocusEvent,
    QImage,
    QKeyEvent,
    QResizeEvent,
    QTextCursor,
)
from PySide6.QtWidgets import QSizePolicy, QWidget
from typing_extensions import override

from app.theme.tokens import Type
from app.viewmodels.long_lines import break_long_lines, rejoin_lines
from app.widgets.message_edit import MessageEdit
from app.words import composer as words

MAX_LINES = 10
_IMAGE_KINDS = ("image/png", "image/jpeg", "image/webp", "image/tiff")  # the best first


class ComposerEdit(MessageEdit):
    """The composer's text field. It accepts text, and reports pasted files and pictures."""

    files_pasted = Signal(object)  # argument: tuple of Path
    image_pasted = Signal(object)  # argument: bytes of an image file, or a QImage
    focus_changed = Signal()
    edit_last_requested = Signal()  # emitted when Up is pressed in the empty field

    def __init__(self, parent: QWidget) -> None:
        super().__init__(words.MESSAGE, Type.COMPOSER.line, parent)
        self.setObjectName("composerEdit")
        self.text_before = ""  # the text before the user changed it
        self.setPlaceholderText(words.MESSAGE)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.lines.documentSizeChanged.connect(self._fit)
        self._fit()

    @property
    def text(self) -> str:
        """The user's text, without the line breaks that the field adds to very long lines."""
        return rejoin_lines(self.toPlainText())

    def set_text(self, text: str) -> None:
        """Replace the whole text and clear the undo history."""
        self.setPlainText(break_long_lines(text))
        self.text_before = self.text
        self.moveCursor(QTextCursor.MoveOperation.End)

    def set_zoom(self, zoom: float) -> None:
        """Scale the lines of text by a factor. The window's style sheet scales the font."""
        self.set_line_height(round(Type.COMPOSER.line * zoom))
        self._fit()

    def _fit(self) -> None:
        """Set the height so that the lines fit, up to MAX_LINES. Longer text gets a scroll bar."""
        paragraphs = islice(self.lines.paragraphs(), MAX_LINES)
        num_lines = min(MAX_LINES, sum(max(1, one.lineCount()) for one in paragraphs))
        height = num_lines * self.lines.line_height
        if height != self.height():
            self.setFixedHeight(height)
        policy = Qt.ScrollBarPolicy
        self.setVerticalScrollBarPolicy(
            policy.ScrollBarAsNeeded if num_lines == MAX_LINES else policy.ScrollBarAlwaysOff
        )

    @override
    def keyPressEvent(self, e: QKeyEvent) -> None:
        if e.key() == Qt.Key.Key_Up and self.document().isEmpty() and not self.is_composing:
            self.edit_last_requested.emit()
        else:
            super().keyPressEvent(e)

    @override
    def resizeEvent(self, e: QResizeEvent) -> None:
        super().resizeEvent(e)
        self._fit()

    @override
    def changeEvent(self, e: QEvent) -> None:
        super().changeEvent(e)
        if e.type() is QEvent.Type.FontChange:
            self._fit()

    @override
    def focusInEvent(self, e: QFocusEvent) -> None:
        super().focusInEvent(e)
        self.focus_changed.emit()

    @override
    def focusOutEvent(self, e: QFocusEvent) -> None:
        super().focusOutEvent(e)
        self.focus_changed.emit()

    @override
    def canInsertFromMimeData(self, source: QMimeData) -> bool:
        return source.hasText() or source.hasImage() or source.hasUrls()

    @override
    def dragEnterEvent(self, e: QDragEnterEvent) -> None:
        """Leave dragged files and pictures to the window, which accepts them everywhere."""
        if _has_files(e.mimeData()) or e.mimeData().hasImage():
            e.ignore()
        else:
            super().dragEnterEvent(e)

    @override
    def createMimeDataFromSelection(self) -> QMimeData:
        mime = QMimeData()
        mime.setText(rejoin_lines(self.textCursor().selection().toPlainText()))
        return mime

    @override
    def insertFromMimeData(self, source: QMimeData) -> None:
        if _has_files(source):
            paths = (Path(url.toLocalFile()) for url in source.urls() if url.isLocalFile())
            self.files_pasted.emit(tuple(paths))
        elif source.hasText():
            self.insertPlainText(break_long_lines(_unix_lines(source.text())))
            self.ensureCursorVisible()
        elif source.hasImage():
            self.image_pasted.emit(image_of(source))


def _has_files(source: QMimeData) -> bool:
    return source.hasUrls() and any(url.isLocalFile() for url in source.urls())


def image_of(source: QMimeData) -> bytes | QImage:
    """Return a pasted or dropped picture as it is, or decoded if it has no file format."""
    found = (bytes(source.data(kind).data()) for kind in _IMAGE_KINDS if source.hasFormat(kind))
    return next(filter(None, found), None) or cast("QImage", source.imageData())


def _unix_lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")
