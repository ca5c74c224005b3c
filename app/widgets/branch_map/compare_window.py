"""Two branches side by side, with the words that differ marked. Main thread.

Both branches are columns of one table, so that they scroll together, and lines that are the same
stand beside each other.
"""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import (
    QColor,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextLength,
    QTextTable,
    QTextTableFormat,
)
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QTextBrowser, QVBoxLayout, QWidget

from app.conversation.forks import num_shared
from app.conversation.tree import Conversation, MessageNode
from app.theme.palette import Theme
from app.theme.tokens import Size, Space, Type
from app.viewmodels.comparing import ComparedMessage, ComparedText, compare_branches
from app.widgets.focus_ring import FocusRing
from app.widgets.own_windows import OwnWindow
from app.widgets.window_size import within_screen
from app.words import branches as words, transcript
from engine.types import Role

Branch = tuple[MessageNode, ...]


class CompareWindow(OwnWindow):
    """The window. It is created once, and closing only hides it."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Window)
        self.setObjectName("compare")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._theme = theme
        self._compared: tuple[ComparedMessage, ...] = ()
        self.summary = QLabel(self)
        self.summary.setProperty("tone", "secondary")
        self.summary.setIndent(Space.XS)
        self.heads = (QLabel(self), QLabel(self))
        self.text = QTextBrowser(self)
        self.text.setObjectName("comparedText")
        self.text.setFrameShape(QFrame.Shape.NoFrame)
        self.text.setOpenLinks(False)
        self.text.setUndoRedoEnabled(False)
        self.text.document().setDocumentMargin(0)
        FocusRing(theme, self.text)
        self._build()
        theme.changed.connect(self._fill)
        theme.zoomed.connect(self._fill)

    def compare(
        self, conversation: Conversation, pair: tuple[Branch, Branch], names: tuple[str, str]
    ) -> None:
        """Show two branches with their names, from the message where they part."""
        first, second = pair
        self.setWindowTitle(words.compare_title(conversation.title))
        shared = num_shared(first, second)
        one, other = first[shared:], second[shared:]
        self._compared = compare_branches(one, other)
        places = sum(message.num_differences for message in self._compared)
        self.summary.setText(words.compared(shared=shared, places=places))
        for label, name, branch in zip(self.heads, names, (one, other), strict=True):
            label.setText(words.branch_name(name, number=len(branch)))
        self._fill()
        self.show()
        self.raise_()
        self.activateWindow()
        self.text.setFocus()

    def _build(self) -> None:
        heads = QHBoxLayout()
        heads.setSpacing(0)
        for label in self.heads:
            label.setProperty("type", "heading")
            label.setIndent(Space.XS)
            heads.addWidget(label, 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(Space.XL, Space.L, Space.XL, Space.L)
        layout.setSpacing(Space.S)
        layout.addWidget(self.summary)
        layout.addLayout(heads)
        layout.addWidget(self.text, 1)
        self.resize(within_screen(self, QSize(Size.COMPARE_WIDTH, Size.WINDOW_HEIGHT)))
        self.setMinimumSize(
            within_screen(self, QSize(Size.WINDOW_MIN_WIDTH, Size.WINDOW_MIN_HEIGHT))
        )

    def _fill(self) -> None:
        document = self.text.document()
        document.setDefaultFont(self._theme.zoomed_font(Type.BODY))
        cursor = QTextCursor(document)
        cursor.beginEditBlock()
        cursor.select(QTextCursor.SelectionType.Document)
        cursor.removeSelectedText()
        self._write(cursor)
        cursor.endEditBlock()
        self.text.moveCursor(QTextCursor.MoveOperation.Start)

    def _write(self, cursor: QTextCursor) -> None:
        if not self._compared:
            return
        style = QTextTableFormat()
        style.setBorder(0)
        style.setCellSpacing(0)
        style.setCellPadding(Space.XS)
        style.setWidth(QTextLength(QTextLength.Type.PercentageLength, 100))
        half = QTextLength(QTextLength.Type.PercentageLength, 50)
        style.setColumnWidthConstraints([half, half])
        num_rows = sum(1 + len(message.parts) for message in self._compared)
        table = cursor.insertTable(num_rows, 2, style)
        row = 0
        for message in self._compared:
            self._write_role(table, row, message)
            row += 1
            for part in message.parts:
                self._write_text(table, row, 0, part.first)
                self._write_text(table, row, 1, part.second)
                row += 1

    def _write_role(self, table: QTextTable, row: int, message: ComparedMessage) -> None:
        style = QTextCharFormat()
        style.setFont(self._theme.zoomed_font(Type.SMALL))
        style.setForeground(QColor(self._theme.colors.tertiary))
        for column, node in enumerate((message.first, message.second)):
            name = words.NO_MESSAGE if node is None else _speaker(node)
            table.cellAt(row, column).firstCursorPosition().insertText(name, style)

    def _write_text(self, table: QTextTable, row: int, column: int, part: ComparedText) -> None:
        colors = self._theme.colors
        plain, marked = QTextCharFormat(), QTextCharFormat()
        plain.setForeground(QColor(colors.text))
        marked.setForeground(QColor(colors.text))
        marked.setBackground(QColor(colors.selected))
        marked.setFontUnderline(True)
        cursor = table.cellAt(row, column).firstCursorPosition()
        line = QTextBlockFormat()
        line.setLineHeight(
            100 * Type.BODY.line / Type.BODY.size / 1.2,
            QTextBlockFormat.LineHeightTypes.ProportionalHeight.value,
        )
        cursor.setBlockFormat(line)
        text, at = part.text.removesuffix("\n"), 0
        for begin, end in part.marks:
            cursor.insertText(text[at:begin], plain)
            cursor.insertText(text[begin:end], marked)
            at = end
        cursor.insertText(text[at:], plain)


def _speaker(node: MessageNode) -> str:
    return transcript.YOU if node.role is Role.USER else transcript.ASSISTANT
