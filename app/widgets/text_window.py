"""The window with the text of a file, as the model reads it. Passages in it can be marked."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtGui import QColor, QKeyEvent, QKeySequence, QTextCursor
from PySide6.QtWidgets import QHBoxLayout, QLabel, QTextEdit, QVBoxLayout, QWidget
from typing_extensions import override

from app.conversation.attachments import Attachment
from app.conversation.quotes import QuotedRange
from app.theme.palette import Theme
from app.theme.tokens import Size, Space, Type
from app.viewmodels.document_text import DocumentText
from app.widgets.button import Button
from app.widgets.fields import TextField
from app.widgets.line_height import line_height
from app.widgets.own_windows import OwnWindow
from app.widgets.window_size import within_screen
from app.words import attachments as words

_LEAST = QSize(360, 240)
_USUAL = QSize(Size.SETTINGS_WIDTH, Size.SETTINGS_HEIGHT)


class FileText(TextField):
    """The text, which can be read, selected and copied."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(Type.UI.line, parent)
        self.setObjectName("fileText")
        self.setReadOnly(True)
        self.setTabChangesFocus(True)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse
            | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )

    @override
    def changeEvent(self, e: QEvent) -> None:
        super().changeEvent(e)
        if e.type() is QEvent.Type.FontChange:
            self.set_line_height(line_height(self, Type.UI))


class TextWindow(OwnWindow):
    """A file's text, and buttons that go through its marked passages if there are any.

    The passage on show is selected. The keys of Find Next and Find Previous work too.
    """

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Window)
        self.setObjectName("fileTextWindow")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._theme = theme
        self._digest = ""  # of the text on show
        self._shown = DocumentText("")
        self._passages: Sequence[QuotedRange] = ()
        self._at = 0  # index of the selected passage
        self.edit = FileText(self)
        self.number = QLabel(self)
        self.previous_button = Button(words.PREVIOUS_PASSAGE, self)
        self.next_button = Button(words.NEXT_PASSAGE, self)
        self._bar = QWidget(self)
        self._build()
        self.resize(within_screen(self, _USUAL))

    def open(self, file: Attachment, passages: Sequence[QuotedRange] = ()) -> None:
        """Show a text at its first passage, or at its start, and bring the window to the front."""
        self.setWindowTitle(words.text_title(file.name, file.part))
        self.edit.setAccessibleName(words.text_of(file.name))
        if file.digest != self._digest:
            self._digest, self._shown = file.digest, DocumentText(file.text)
            self.edit.setPlainText(self._shown.text)
        self._passages = passages
        self._bar.setVisible(bool(passages))
        several = len(passages) > 1
        for button in (self.previous_button, self.next_button):
            button.setVisible(several)
        self._mark()
        self.show()  # before a passage is brought into view: the height decides where it stands
        self.raise_()
        self.activateWindow()
        self.edit.setFocus()
        if passages:
            self._go_to(0)
        else:
            self.edit.moveCursor(QTextCursor.MoveOperation.Start)

    def step(self, by: int) -> None:
        """Show the next (1) or the previous (-1) passage. After the last one comes the first."""
        if self._passages:
            self._go_to((self._at + by) % len(self._passages))

    def _build(self) -> None:
        self.number.setProperty("tone", "secondary")
        row = QHBoxLayout(self._bar)
        row.setContentsMargins(Space.M, Space.S, Space.M, Space.S)
        row.setSpacing(Space.S)
        row.addWidget(self.number, 1)
        row.addWidget(self.previous_button)
        row.addWidget(self.next_button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.edit, 1)
        layout.addWidget(self._bar)
        self.setMinimumSize(_LEAST)
        self.previous_button.clicked.connect(lambda: self.step(-1))
        self.next_button.clicked.connect(lambda: self.step(1))
        self._theme.changed.connect(self._mark)

    def _mark(self) -> None:
        """Mark all passages with a background."""
        marks: list[QTextEdit.ExtraSelection] = []
        for passage in self._passages:
            mark = QTextEdit.ExtraSelection()
            mark.cursor = self._cursor(passage)
            mark.format.setBackground(QColor(self._theme.colors.selected))
            marks.append(mark)
        self.edit.setExtraSelections(marks)

    def _cursor(self, passage: QuotedRange) -> QTextCursor:
        """Return a cursor that selects a passage. Its start is where the cursor stands."""
        cursor = QTextCursor(self.edit.document())
        cursor.setPosition(self._shown.position(passage.end))
        cursor.setPosition(self._shown.position(passage.start), QTextCursor.MoveMode.KeepAnchor)
        return cursor

    def _go_to(self, at: int) -> None:
        self._at = at
        self.number.setText(words.passage(at + 1, len(self._passages)))
        self.edit.setTextCursor(self._cursor(self._passages[at]))
        self.edit.centerCursor()

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.FindNext):
            self.step(1)
        elif event.matches(QKeySequence.StandardKey.FindPrevious):
            self.step(-1)
        else:
            super().keyPressEvent(event)
