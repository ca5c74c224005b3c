"""The editor that takes the place of a user's message. Main thread."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen, QResizeEvent, QTextCursor
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget
from typing_extensions import override

from app.theme.tokens import Radius, Size, Space, Type
from app.widgets.message_edit import MessageEdit
from app.widgets.transcript_look import Look
from app.words import dialogs, transcript as words

MAX_LINES = 14
_BORDER = 2


class EditorText(MessageEdit):
    """The text field; says when its width has changed."""

    resized = Signal()

    @override
    def resizeEvent(self, e: QResizeEvent) -> None:
        super().resizeEvent(e)
        self.resized.emit()


class MessageEditor(QWidget):
    """A text field with Save and Cancel in the look of a bubble."""

    submitted = Signal(str)
    cancelled = Signal()
    height_changed = Signal()

    def __init__(self, look: Look, text: str, parent: QWidget) -> None:
        super().__init__(parent)
        self._look = look
        self._text = EditorText(words.EDIT_FIELD, Type.BODY.line, self)
        self._save = QPushButton(words.SAVE_VERSION, self)
        self._cancel = QPushButton(dialogs.CANCEL, self)
        self._build()
        self._connect()
        self._text.setPlainText(text)
        self._text.moveCursor(QTextCursor.MoveOperation.End)
        self.set_look(look)
        self.setFocusProxy(self._text)

    @property
    def text(self) -> str:
        return self._text.toPlainText()

    def set_return_sends(self, return_sends: bool) -> None:  # noqa: FBT001 (the value)
        self._text.return_sends = return_sends

    def set_look(self, look: Look) -> None:
        """Take another theme or zoom."""
        self._look = look
        self._text.lines.line_height = look.px(Type.BODY.line)
        self._text.setFont(look.face(Type.BODY).font)
        self._text.setStyleSheet(f"font-size: {look.px(Type.BODY.size)}px;")
        self._fit()
        self.update()

    @override
    def sizeHint(self) -> QSize:
        margins = self._outer.contentsMargins()
        around = margins.top() + margins.bottom() + self._outer.spacing()
        return QSize(0, self._text.minimumHeight() + around + Size.CONTROL)

    def _build(self) -> None:
        self._save.setProperty("kind", "primary")
        buttons = QHBoxLayout()
        buttons.setSpacing(Space.S)
        buttons.addStretch(1)
        buttons.addWidget(self._cancel)
        buttons.addWidget(self._save)
        self._outer = QVBoxLayout(self)
        self._outer.setContentsMargins(Space.L, Space.M, Space.M, Space.M)
        self._outer.setSpacing(Space.S)
        self._outer.addWidget(self._text, 1)
        self._outer.addLayout(buttons)

    def _connect(self) -> None:
        self._save.clicked.connect(self._submit)
        self._cancel.clicked.connect(self.cancelled)
        self._text.submitted.connect(self._submit)
        self._text.cancelled.connect(self.cancelled)
        self._text.textChanged.connect(self._on_text_changed)
        self._text.resized.connect(self._fit)
        self._text.lines.documentSizeChanged.connect(self._fit)

    def _submit(self) -> None:
        if self.text.strip():
            self.submitted.emit(self.text)

    def _on_text_changed(self) -> None:
        self._save.setEnabled(bool(self.text.strip()))

    def _fit(self) -> None:
        """Be as high as the text, within limits."""
        # The document of a QPlainTextEdit measures its height in lines.
        num_lines = round(self._text.lines.documentSize().height())
        scrolls = num_lines > MAX_LINES
        policy = Qt.ScrollBarPolicy
        self._text.setVerticalScrollBarPolicy(
            policy.ScrollBarAsNeeded if scrolls else policy.ScrollBarAlwaysOff
        )
        height = max(1, min(num_lines, MAX_LINES)) * self._text.lines.line_height
        if height != self._text.minimumHeight():
            self._text.setFixedHeight(height)
            self.height_changed.emit()

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        colors = self._look.colors
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(QColor(colors.accent), _BORDER))
        painter.setBrush(QColor(colors.canvas))
        half = _BORDER // 2
        rect = self.rect().adjusted(half, half, -half, -half)
        painter.drawRoundedRect(rect, Radius.BUBBLE, Radius.BUBBLE)
        painter.end()
