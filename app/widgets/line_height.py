"""Lines as high as the type scale says, where Qt would take the font's own height. Main thread."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QTextBlock, QTextDocument, QTextLayout
from PySide6.QtWidgets import QLabel, QPlainTextDocumentLayout, QWidget
from typing_extensions import override

from app.theme.window_style import LABEL_TYPES


class EvenLines(QPlainTextDocumentLayout):
    """The layout of an editor of plain text. Letters stand at the baseline, else at the top of their line."""

    def __init__(self, line_height: int, document: QTextDocument) -> None:
        super().__init__(document)
        self.line_height = line_height
        self.baseline: float | None = None

    @override
    def blockBoundingRect(self, block: QTextBlock) -> QRectF:
        rect = super().blockBoundingRect(block)  # lays the block out, if that has to be
        if not block.isValid():
            return rect
        layout = block.layout()
        below = rect.height() - layout.boundingRect().bottom()  # the document's margin
        count = layout.lineCount()
        for number in reversed(range(count)):
            line = layout.lineAt(number)
            above = 0.0 if self.baseline is None else self.baseline - line.ascent()
            place = QPointF(line.x(), number * self.line_height + above)
            if line.position() == place:
                break  # so do those before it
            line.setPosition(place)
        rect.setHeight(count * self.line_height + below)
        return rect

    def paragraphs(self) -> Iterator[QTextLayout]:
        """Each laid out, from the first on; those that nobody asks for cost nothing."""
        block = self.document().begin()
        while block.isValid():
            self.blockBoundingRect(block)
            yield block.layout()
            block = block.next()


class Sentences(QLabel):
    """Words that may need several lines. Plain text, whatever is in it."""

    def __init__(self, parent: QWidget, kind: str = "ui", text: str = "") -> None:
        super().__init__(parent)
        self._line_height = LABEL_TYPES[kind].line
        self._text = ""
        self.setProperty("type", kind)
        self.setTextFormat(Qt.TextFormat.RichText)
        self.setWordWrap(True)
        self.setText(text)

    @override
    def text(self) -> str:
        return self._text

    @override
    def setText(self, arg__1: str) -> None:
        self._text = arg__1
        super().setText(as_lines(arg__1, self._line_height) if arg__1 else "")


def as_lines(text: str, line_height: int) -> str:
    """Plain text as rich text with lines of that height."""
    lines = escape(text, quote=False).replace("\n", "<br>")
    return f'<p style="margin: 0; line-height: {line_height}px">{lines}</p>'
