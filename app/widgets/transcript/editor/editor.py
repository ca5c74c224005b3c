"""The editor that takes the place of a message. Used on the main thread only.

The editor of an answer has the width of the column, and Return starts a new line in it. The editor
of a user's message has the shape of the bubble, with the chips of its files above its text. Text in
a message without files in the editor has the same font, line height and wrapping as text in the
bubble, and begins at the left. So the text does not move when editing starts, unless the buttons
are wider. The editor grows to the left, as the bubble does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPoint, QRect, QRectF, QSize, Qt, Signal, SignalInstance
from PySide6.QtGui import (
    QColor,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
    QTextCursor,
)
from PySide6.QtWidgets import QWidget
from typing_extensions import override

from app.theme.palette import Theme
from app.theme.tokens import Radius, Space, Type
from app.viewmodels.attachments import Chip
from app.viewmodels.previews import PreviewText
from app.widgets.line_height import Sentences
from app.widgets.message_edit import MessageEdit
from app.widgets.transcript.editor.buttons import EditorButtons
from app.widgets.transcript.editor.file_chips import FileChips
from app.widgets.transcript.editor.preview_pane import PreviewPane
from app.widgets.transcript.rows.look import Look
from app.words import attachments, transcript as words
from engine.types import Role

MAX_LINES = 14  # maximum number of visible lines; a longer text scrolls
_MIN_LINES = 3  # number of lines that are visible in a low window too
_BORDER = 2


@dataclass(frozen=True, slots=True)
class TypedEdit:
    """The changed text of a message, and the selection in it, as offsets in the text."""

    text: str
    anchor: int
    cursor: int


class EditorText(MessageEdit):
    """The text field of the editor. It emits `resized` when its size has changed."""

    resized = Signal()

    def __init__(self, name: str, line_height: int, parent: QWidget) -> None:
        super().__init__(name, line_height, parent)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.horizontalScrollBar().rangeChanged.connect(self._keep_left)

    def _keep_left(self) -> None:
        """Scroll no text to the left for a space at the end of a wrapped line."""
        self.horizontalScrollBar().setMaximum(0)

    @override
    def resizeEvent(self, e: QResizeEvent) -> None:
        super().resizeEvent(e)
        self.resized.emit()


class MessageEditor(QWidget):
    """A text field with Save and Cancel buttons, in the shape of a message bubble."""

    submitted = Signal(str)
    cancelled = Signal()
    text_changed = Signal()
    preview_toggled = Signal()  # a click on the switch for previews
    attach_requested = Signal()  # a click on the button for files
    size_changed = Signal()  # emitted when sizeHint() has changed

    def __init__(
        self,
        look: Look,
        text: str,
        role: Role,
        theme: Theme,
        parent: QWidget,
    ) -> None:
        super().__init__(parent)
        self._look = look
        self._are_files_changed = False
        self._is_opening = False  # True while a file is extracted
        self._room = 0  # maximum width of a line of text in pixels
        self._column = 0  # maximum width of the editor in pixels
        self._view_height = 0  # height of the transcript's view in pixels
        self._num_lines = 0  # number of visible lines
        self._longest = 0  # width of the longest line in pixels
        self._is_answer = role is Role.ASSISTANT
        self.files = FileChips(theme, look.pictures, self)
        name = words.EDIT_ANSWER_FIELD if self._is_answer else words.EDIT_FIELD
        self._text = EditorText(name, Type.BODY.line, self)
        self._text.takes_files = not self._is_answer
        self._cost = Sentences(self, "small")
        self._preview = PreviewPane(self)
        self._buttons = EditorButtons(theme, self, is_answer=self._is_answer)
        self._cost.setProperty("tone", "secondary")
        self._cost.hide()
        self._preview.hide()
        self._connect()
        self._text.setPlainText(text)
        self.set_look(look)
        self.setFocusProxy(self._text)

    @property
    def text(self) -> str:
        return self._text.toPlainText()

    @property
    def is_changed(self) -> bool:
        """True if the text or the files differ from those of the message."""
        return self._text.document().isModified() or self._are_files_changed

    @property
    def typed(self) -> TypedEdit:
        cursor = self._text.textCursor()
        return TypedEdit(self.text, cursor.anchor(), cursor.position())

    def set_typed(self, typed: TypedEdit) -> None:
        """Show text that the user typed before, as a change of the message."""
        self._text.selectAll()
        self._text.insertPlainText(typed.text)
        cursor = self._text.textCursor()
        cursor.setPosition(typed.anchor)
        cursor.setPosition(typed.cursor, QTextCursor.MoveMode.KeepAnchor)
        self._text.setTextCursor(cursor)

    @property
    def pasted(self) -> tuple[SignalInstance, SignalInstance]:
        """The signals of pasted files and of a pasted picture."""
        return self._text.files_pasted, self._text.image_pasted

    def set_files(self, chips: Sequence[Chip], *, are_changed: bool) -> None:
        """Show the files of the message. While one is being opened, the message cannot be sent."""
        before = self.sizeHint()
        self._are_files_changed = are_changed
        self._is_opening = any(chip.is_opening for chip in chips)
        self.files.show_chips(chips)
        self._text.setAccessibleDescription(", ".join(chip.name for chip in chips))
        self._refresh_save()
        self._fit()
        self._place()
        if self.sizeHint() != before:
            self.size_changed.emit()

    @property
    def cost(self) -> str:
        """The note on what the model will read."""
        return self._cost.text()

    def set_cost(self, text: str) -> None:
        """Show a note on what the model will read, above the buttons; empty: show none."""
        if text != self.cost:
            self._cost.setText(text)
            self._cost.setVisible(bool(text))
            self._fit()
            self._place()
            self.size_changed.emit()

    def set_preview(self, shown: PreviewText, *, is_on: bool) -> None:
        """Show the preview of the answer, if previews are on, and the state of their switch."""
        before = self.sizeHint()
        self._buttons.switch.setChecked(is_on)
        has_pane = is_on and not self._is_answer
        if not has_pane:
            self._preview.reset()
        self._preview.show_preview(shown if has_pane else PreviewText())
        self._preview.setVisible(has_pane)
        self._fit()
        self._place()
        if self.sizeHint() != before:
            self.size_changed.emit()

    def place_cursor(self) -> None:
        """Put the cursor at the end of the text, or at the start of a text that has to scroll."""
        operation = QTextCursor.MoveOperation
        self._text.moveCursor(operation.Start if self._scrolls else operation.End)

    @property
    def _scrolls(self) -> bool:
        policy = self._text.verticalScrollBarPolicy()
        return policy is Qt.ScrollBarPolicy.ScrollBarAlwaysOn

    def set_return_sends(self, return_sends: bool) -> None:  # noqa: FBT001 (the value)
        self._text.return_sends = return_sends and not self._is_answer

    def set_look(self, look: Look) -> None:
        """Apply another theme or zoom."""
        self._look = look
        face, lines = look.face(Type.BODY), self._text.lines
        lines.line_height, lines.baseline = face.line, face.baseline
        self._text.setFont(face.font)
        self._text.setStyleSheet(f"font-size: {look.px(Type.BODY.size)}px;")
        self._text.setTabStopDistance(face.tab)
        self._preview.set_look(look)
        self._fit()
        self.update()

    def set_room(self, room: int, column: int, view_height: int) -> None:
        """Set the maximum size of the editor.

        Args:
            room: the maximum width of a text line, which is that of the message bubble.
            column: the maximum width of the editor. Its buttons may need more than the bubble.
            view_height: the height of the view, which should show the whole editor.
        """
        if (room, column, view_height) != (self._room, self._column, self._view_height):
            self._room, self._column, self._view_height = room, column, view_height
            self.files.set_room(view_height // 3)
            bubble = room + 2 * self._look.px(Space.L)
            self._buttons.arrange(bubble - 2 * Space.M, column - 2 * Space.M)
            self._place()
            self._fit()

    @override
    def sizeHint(self) -> QSize:
        look = self._look
        buttons = self._buttons.sizeHint()
        longest = max(self._longest, min(self.files.natural_width, self._room))
        cost = self._cost.fontMetrics().horizontalAdvance(self.cost)
        longest = max(longest, cost + Space.XS)  # QLabel needs more than the width of its text
        if self._has_preview:
            longest = max(longest, self._room)
        width = max(longest + 2 * look.px(Space.L), buttons.width() + 2 * Space.M)
        width = min(width, self._column)
        text = self._num_lines * self._text.lines.line_height
        return QSize(width, text + self._height_around(width))

    def _height_around(self, width: int) -> int:
        """Return the height of the editor without its text."""
        return self._height_around_both(width) + self._preview_height(width)

    def _height_around_both(self, width: int) -> int:
        """Return the height of the editor without its text and the preview."""
        below = self._cost_height(width) + Space.S + self._buttons.sizeHint().height() + Space.M
        return self._text_top(width) + below

    @property
    def _has_preview(self) -> bool:
        return not self._preview.isHidden()

    def _preview_height(self, width: int) -> int:
        """Return the height of the preview, and of the gap above it."""
        if not self._has_preview:
            return 0
        least = _MIN_LINES * self._text.lines.line_height
        most = self._view_height - self._height_around_both(width) - least - Space.S
        return self._preview.height_in(width - 2 * self._look.px(Space.L), most) + Space.S

    @property
    def _max_lines(self) -> int:
        """The number of lines above which the text scrolls, so that the buttons stay in view."""
        free = self._view_height - self._height_around(self._column)
        return min(MAX_LINES, max(_MIN_LINES, free // self._text.lines.line_height))

    def _connect(self) -> None:
        self._buttons.save.clicked.connect(self._submit)
        self._buttons.cancel.clicked.connect(self.cancelled)
        self._buttons.switch.clicked.connect(self.preview_toggled)
        self._text.submitted.connect(self._submit)
        self._text.cancelled.connect(self.cancelled)
        self._text.textChanged.connect(self._on_text_changed)
        self._text.textChanged.connect(self.text_changed)
        self._text.resized.connect(self._fit)
        self._buttons.attach.clicked.connect(self.attach_requested)

    def _submit(self) -> None:
        if self._buttons.save.isEnabled():
            self.submitted.emit(self.text)

    def _on_text_changed(self) -> None:
        self._refresh_save()
        self._fit()

    def _refresh_save(self) -> None:
        self._buttons.save.setEnabled(bool(self.text.strip()) and not self._is_opening)
        self._buttons.save.setToolTip(attachments.WAIT if self._is_opening else "")

    def _fit(self) -> None:
        """Fit the editor's size to its text, up to the maximum width and number of lines."""
        max_lines = self._max_lines
        widths = list(self._line_widths(max_lines))
        scrolls = len(widths) > max_lines
        is_full = scrolls or self._is_answer
        longest = self._room if is_full else min(self._room, int(max(widths)) + 1)
        num_lines = min(len(widths), max_lines)
        policy = Qt.ScrollBarPolicy
        self._text.setVerticalScrollBarPolicy(
            policy.ScrollBarAlwaysOn if scrolls else policy.ScrollBarAlwaysOff
        )
        if (longest, num_lines) != (self._longest, self._num_lines):
            self._longest, self._num_lines = longest, num_lines
            self._place()
            self.size_changed.emit()

    def _line_widths(self, max_lines: int) -> Iterator[float]:
        """Yield the width of each displayed line.

        Stop after the paragraph in which the number of lines exceeds max_lines. The widths of the
        later lines are not needed, because a text of more lines scrolls and takes the maximum
        width.
        """
        num_lines = 0
        for paragraph in self._text.lines.paragraphs():
            num_lines += paragraph.lineCount()
            lines = map(paragraph.lineAt, range(paragraph.lineCount()))
            yield from (line.naturalTextWidth() for line in lines)
            if num_lines > max_lines:
                return

    def _place(self) -> None:
        """Put the text at its position in the bubble, and the buttons below the text.

        The text field always has its maximum width, so that the line breaks do not change while the
        editor grows. The unused part of the field is clipped at the editor's edge.
        """
        text, pad = self._text, self._look.px(Space.L)
        beside = text.verticalScrollBar().sizeHint().width() if self._scrolls else 0
        height = self._num_lines * self._text.lines.line_height
        is_lower = height < text.height()
        inner = self.width() - 2 * pad
        self.files.setGeometry(pad, self._look.px(Space.M), inner, self.files.height_in(inner))
        text_top = self._text_top(self.width())
        text.setGeometry(pad, text_top, self._room + beside, height)
        if is_lower and text.hasFocus():
            text.ensureCursorVisible()
        buttons = self._buttons.sizeHint()
        left = self.width() - Space.M - buttons.width()
        top = text_top + height + Space.S
        if self._has_preview:
            preview = self._preview_height(self.width())
            self._preview.setGeometry(pad, top, inner, preview - Space.S)
            self._preview.place(inner, preview - Space.S)
            top += preview
        cost = self._cost_height(self.width())
        self._cost.setGeometry(pad, top, inner, max(0, cost - Space.S))
        top += cost
        self._buttons.setGeometry(QRect(QPoint(left, top), buttons))

    def _cost_height(self, width: int) -> int:
        """Return the height of the note on the cost, and of the gap below it."""
        if not self.cost:
            return 0
        return self._cost.heightForWidth(width - 2 * self._look.px(Space.L)) + Space.S

    def _text_top(self, width: int) -> int:
        """Return the y coordinate of the text, below the files of the message."""
        return self._look.px(Space.M) + self.files.height_in(width - 2 * self._look.px(Space.L))

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place()

    @override
    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._text.setFocus(Qt.FocusReason.MouseFocusReason)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        look, half = self._look, _BORDER / 2
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(QColor(look.colors.accent), _BORDER))
        painter.setBrush(QColor(look.colors.canvas))
        rect = QRectF(self.rect()).adjusted(half, half, -half, -half)
        radius = look.px(Radius.BUBBLE)
        painter.drawRoundedRect(rect, radius, radius)
        painter.end()
