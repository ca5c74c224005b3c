"""The text field for a message: Return sends, Shift+Return starts a new line, Esc cancels.

Ctrl+Return (⌘+Return on a Mac) always sends. If the setting `return_sends` is off, Return starts a
new line, and only Ctrl+Return sends.
"""

from __future__ import annotations

from pathlib import Path
from typing import cast

from PySide6.QtCore import QMimeData, Qt, Signal
from PySide6.QtGui import QDragEnterEvent, QImage, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QFrame, QWidget
from typing_extensions import override

from app.widgets.fields import TextField

_IMAGE_KINDS = ("image/png", "image/jpeg", "image/webp", "image/tiff")  # the best first
_BREAKS = Qt.KeyboardModifier.ShiftModifier | Qt.KeyboardModifier.AltModifier
_SENDS = Qt.KeyboardModifier.ControlModifier


def send_key(*, return_sends: bool) -> str:
    """Return the name of the key that sends a message, in this platform's notation."""
    keys = QKeySequence("Return" if return_sends else "Ctrl+Return")
    return keys.toString(QKeySequence.SequenceFormat.NativeText)


def break_key(*, return_sends: bool) -> str:
    """Return the name of the key that starts a new line, in this platform's notation."""
    keys = QKeySequence("Shift+Return" if return_sends else "Return")
    return keys.toString(QKeySequence.SequenceFormat.NativeText)


class MessageEdit(TextField):
    """A frameless plain-text field for one message. Tab moves the focus to the next widget."""

    files_pasted = Signal(object)  # argument: tuple of Path
    image_pasted = Signal(object)  # argument: bytes of an image file, or a QImage
    submitted = Signal()  # emitted when the user presses the key that sends the message
    cancelled = Signal()  # emitted when the user presses Esc

    def __init__(self, name: str, line_height: int, parent: QWidget) -> None:
        super().__init__(line_height, parent)
        self.setAccessibleName(name)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setTabChangesFocus(True)
        self.document().setDocumentMargin(0)
        self.takes_files = True  # False: only text can be pasted
        self.return_sends = True  # True: Return sends the message; False: only Ctrl+Return sends it

    @override
    def keyPressEvent(self, e: QKeyEvent) -> None:
        is_return = e.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if not is_return and e.key() != Qt.Key.Key_Escape:
            super().keyPressEvent(e)
        elif not is_return:
            self.cancelled.emit()
        elif _is_of_a_command(e):
            e.ignore()
        elif e.modifiers() & _BREAKS or not (self.return_sends or e.modifiers() & _SENDS):
            self.textCursor().insertBlock()
            self.ensureCursorVisible()
        else:
            self.submitted.emit()

    def insert_text(self, text: str) -> None:
        """Insert pasted text at the cursor."""
        self.insertPlainText(text)
        self.ensureCursorVisible()

    @override
    def canInsertFromMimeData(self, source: QMimeData) -> bool:
        return source.hasText() or (self.takes_files and (source.hasImage() or source.hasUrls()))

    @override
    def dragEnterEvent(self, e: QDragEnterEvent) -> None:
        """Leave dragged files and pictures to the window, which accepts them everywhere."""
        if _has_files(e.mimeData()) or e.mimeData().hasImage():
            e.ignore()
        else:
            super().dragEnterEvent(e)

    @override
    def insertFromMimeData(self, source: QMimeData) -> None:
        if self.takes_files and _has_files(source):
            paths = (Path(url.toLocalFile()) for url in source.urls() if url.isLocalFile())
            self.files_pasted.emit(tuple(paths))
        elif source.hasText():
            self.insert_text(_unix_lines(source.text()))
        elif self.takes_files and source.hasImage():
            self.image_pasted.emit(image_of(source))


def _has_files(source: QMimeData) -> bool:
    return source.hasUrls() and any(url.isLocalFile() for url in source.urls())


def image_of(source: QMimeData) -> bytes | QImage:
    """Return a pasted or dropped picture as it is, or decoded if it has no file format."""
    found = (bytes(source.data(kind).data()) for kind in _IMAGE_KINDS if source.hasFormat(kind))
    return next(filter(None, found), None) or cast("QImage", source.imageData())


def _unix_lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _is_of_a_command(event: QKeyEvent) -> bool:
    """Return True for Shift+Ctrl+Return: a field gets the shortcut of a disabled command."""
    both = Qt.KeyboardModifier.ShiftModifier | _SENDS
    return event.modifiers() & both == both
