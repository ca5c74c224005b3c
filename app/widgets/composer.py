"""The composer for new messages: text field, thinking chip, context ring, send button, caption.

The composer only emits signals for the user's actions. ChatPane connects the signals to the
controllers, clears the text after a message is accepted, and calls the setters when the
conversation changes. While an answer is in progress the send button becomes a stop button, but
Return still emits `send_requested`; the controller then queues the message. Main thread.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRectF, QRegularExpression, Qt, Signal
from PySide6.QtGui import QColor, QMouseEvent, QPainter, QPaintEvent, QPen, QTextCursor
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QVBoxLayout, QWidget
from typing_extensions import override

from app.theme.icons import Icon
from app.theme.palette import Theme
from app.theme.tokens import Radius, Size, Space
from app.viewmodels.attachments import Chip
from app.widgets.composer_edit import ComposerEdit
from app.widgets.context_ring import ContextRing
from app.widgets.icon_button import IconButton
from app.widgets.line_height import Sentences
from app.widgets.message_edit import send_key
from app.widgets.send_button import SendButton, SendState
from app.widgets.thinking_chip import ThinkingChip
from app.widgets.transcript.editor.file_chips import FileChips
from app.widgets.transcript.rows.picture_shelf import PictureShelf
from app.words import attachments

_EMPTY_LINE = "\N{NO-BREAK SPACE}"
_INK = QRegularExpression(r"\S")  # matches a character that is not white space


class Composer(QWidget):
    """The message box with its text field and buttons. ChatPane handles its signals."""

    # argument: the text, which is blank only if files are attached
    send_requested = Signal(str)
    several_requested = Signal(str, int)  # arguments: text, number of answers
    may_send_changed = Signal()
    stop_requested = Signal()
    text_changed = Signal()
    emptied = Signal()  # emitted when neither text nor files are left
    setup_changed = Signal(object)  # argument: a Setup
    edit_last_requested = Signal()
    escaped = Signal()  # emitted when Esc is pressed in the text field
    files_added = Signal(object)  # argument: tuple of Path, the pasted files
    image_pasted = Signal(object)  # argument: bytes of an image file, or a QImage

    def __init__(self, theme: Theme, pictures: PictureShelf, parent: QWidget) -> None:
        super().__init__(parent)
        self._is_blocked = False  # True while no message can be sent
        self._may_send = False
        self._answering = False  # True while the send button is a stop button
        self.edit = ComposerEdit(self)
        self.box = _Box(theme, self.edit, self)
        self.files = FileChips(theme, pictures, self.box)
        self.attach_button = IconButton(theme, Icon.ATTACH, attachments.ATTACH.rstrip("…"), self)
        self.thinking = ThinkingChip(self)
        self.ring = ContextRing(theme, self)
        self.button = SendButton(theme, self)
        self._queue_label = QLabel(self)
        self._caption = Sentences(self, "caption")
        self._build()
        self._connect()

    @property
    def text(self) -> str:
        return self.edit.text

    def set_text(self, text: str) -> None:
        self.edit.set_text(text)

    def type(self, text: str) -> None:
        """Focus the text field and insert text that was typed into another widget."""
        self.edit.setFocus()
        self.edit.insertPlainText(text)

    def quote(self, text: str) -> None:
        """Put a quotation at the end of the text, and the cursor on the line below it."""
        lines = "\n".join(f"> {line}".rstrip() for line in text.strip().splitlines())
        written = self.text.rstrip()
        self.edit.setFocus()
        self.edit.moveCursor(QTextCursor.MoveOperation.End)
        gap = "\n\n" if written else ""
        self.edit.insertPlainText(f"{gap}{lines}\n\n")

    def set_zoom(self, zoom: float) -> None:
        """Scale the lines of the text field and the widest box by a factor."""
        self.edit.set_zoom(zoom)
        self.box.setMaximumWidth(round(Size.COLUMN * zoom) + Space.L)

    def set_return_sends(self, return_sends: bool) -> None:  # noqa: FBT001 (setter)
        """Choose the key that sends: Return if return_sends is True, else only Ctrl+Return."""
        self.edit.return_sends = return_sends
        self.button.set_send_key(send_key(return_sends=return_sends))

    def set_answering(self, answering: bool, note: str = "") -> None:  # noqa: FBT001 (setter)
        """Turn the send button into a stop button while an answer runs.

        `note` is a caption with the number of answers that must end before this one starts; it may
        be empty.
        """
        self._answering = answering
        self._queue_label.setText(note)
        self._queue_label.setVisible(bool(note))
        self._refresh()

    def set_blocked(self, blocked: bool) -> None:  # noqa: FBT001 (setter)
        """Switch the send button off or on. The text stays editable."""
        self._is_blocked = blocked
        self._refresh()

    @property
    def caption(self) -> str:
        return self._caption.text().strip()

    def set_caption(self, text: str, *, keeps_line: bool = False) -> None:
        """Show a caption. With `keeps_line`, an empty caption takes its line, so the box stays."""
        self._caption.setText(text or (_EMPTY_LINE if keeps_line else ""))
        self._caption.setVisible(bool(text) or keeps_line)

    def _build(self) -> None:
        self._queue_label.setProperty("type", "small")
        self._queue_label.setProperty("tone", "secondary")
        self._caption.setProperty("tone", "tertiary")
        self._caption.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        row = QHBoxLayout()
        row.setSpacing(Space.S)
        row.addWidget(self.attach_button)
        row.addWidget(self.thinking)
        row.addStretch()
        row.addWidget(self._queue_label)
        row.addWidget(self.ring)
        row.addWidget(self.button)
        inner = QVBoxLayout(self.box)
        inner.setContentsMargins(Space.L, Space.M + Space.HAIR, Space.S, Space.S)
        inner.setSpacing(Space.XS)
        inner.addWidget(self.files)
        inner.addWidget(self.edit)
        inner.addLayout(row)
        centre = QHBoxLayout()
        centre.addWidget(self.box)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(Space.L, Space.S, Space.L, Space.L)
        layout.setSpacing(Space.S)
        layout.addLayout(centre)
        layout.addWidget(self._caption)

    def _connect(self) -> None:
        self.edit.submitted.connect(self._send)
        self.edit.cancelled.connect(self.escaped)
        self.edit.textChanged.connect(self._on_text_changed)
        self.edit.image_pasted.connect(self.image_pasted)
        self.edit.files_pasted.connect(self.files_added)
        self.edit.edit_last_requested.connect(self.edit_last_requested)
        self.thinking.changed.connect(self.setup_changed)
        self.button.clicked.connect(self._on_button_clicked)

    def show_files(self, chips: Sequence[Chip]) -> None:
        """Show the chips of the attached files. With files, a message needs no text."""
        had_files = bool(self.files.chips)
        self.files.show_chips(chips)
        self._refresh()
        if had_files and not self._can_send():
            self.emptied.emit()

    @property
    def may_send(self) -> bool:
        """True if there is a message, and sending is not switched off."""
        return self._may_send

    def send(self, answers: int) -> None:
        """Send the message for several answers, if it may be sent."""
        if self._may_send:
            self.several_requested.emit(self.text, answers)

    def _send(self) -> None:
        if self._can_send():
            self.send_requested.emit(self.text)

    def _on_button_clicked(self) -> None:
        if self._answering:
            self.stop_requested.emit()
        else:
            self._send()

    def _on_text_changed(self) -> None:
        self._refresh()
        self.text_changed.emit()
        if not self._can_send():
            self.emptied.emit()

    def _refresh(self) -> None:
        can_send = self._can_send()
        if self._may_send != (can_send and not self._is_blocked):
            self._may_send = not self._may_send
            self.may_send_changed.emit()
        if self._answering:
            self.button.set_state(SendState.STOP, enabled=True)
            return
        if (not can_send or self._is_blocked) and self.button.hasFocus():
            # move the focus first: disabling the focused button would focus the next widget
            self.edit.setFocus()
        self.button.set_state(SendState.SEND, enabled=can_send and not self._is_blocked)

    def _can_send(self) -> bool:
        return bool(self.files.chips) or self._has_text()

    def _has_text(self) -> bool:
        """Return True if the text is not blank, without copying the text."""
        document = self.edit.document()
        return not document.isEmpty() and not document.find(_INK).isNull()


class _Box(QFrame):
    """The rounded frame of the text field, with a thicker border while the field has the focus."""

    def __init__(self, theme: Theme, edit: ComposerEdit, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._edit = edit
        self.setMaximumWidth(Size.COLUMN + Space.L)
        edit.focus_changed.connect(self.update)
        theme.changed.connect(self.update)

    @override
    def paintEvent(self, e: QPaintEvent) -> None:
        colors = self._theme.colors
        focused = self._edit.hasFocus()
        width = Space.HAIR if focused else 1
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(QColor(colors.accent if focused else colors.border), width))
        painter.setBrush(QColor(colors.raised))
        inset = width / 2
        rect = QRectF(self.rect()).adjusted(inset, inset, -inset, -inset)
        painter.drawRoundedRect(rect, Radius.BUBBLE, Radius.BUBBLE)

    @override
    def mousePressEvent(self, e: QMouseEvent) -> None:
        self._edit.setFocus(Qt.FocusReason.MouseFocusReason)
