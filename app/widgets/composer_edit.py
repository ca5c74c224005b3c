"""The text field of the composer: plain text that grows from one to ten lines, then scrolls."""

from __future__ import annotations

from itertools import islice

from PySide6.QtCore import QEvent, QMimeData, Qt, Signal
from PySide6.QtGui import (
    QFocusEvent,
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


class ComposerEdit(MessageEdit):
    """The composer's text field. Very long lines are broken in it."""

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
    def createMimeDataFromSelection(self) -> QMimeData:
        mime = QMimeData()
        mime.setText(rejoin_lines(self.textCursor().selection().toPlainText()))
        return mime

    @override
    def insert_text(self, text: str) -> None:
        super().insert_text(break_long_lines(text))
