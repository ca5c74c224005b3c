"""Line heights for editors and labels, taken from the type scale. Main thread."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from PySide6.QtCore import QEvent, QPointF, QRectF, Qt
from PySide6.QtGui import QTextBlock, QTextDocument, QTextLayout
from PySide6.QtWidgets import QLabel, QPlainTextDocumentLayout, QWidget
from typing_extensions import override

from app.theme.tokens import TextStyle
from app.theme.window_style import LABEL_TYPES


class EvenLines(QPlainTextDocumentLayout):
    """A document layout for plain-text editors, with lines of `line_height` px.

    `baseline` is the distance of the text's baseline from the top of its line, in px. If it is
    None, the text starts at the top of its line.
    """

    def __init__(self, line_height: int, document: QTextDocument) -> None:
        super().__init__(document)
        self.line_height = line_height
        self.baseline: float | None = None

    @override
    def blockBoundingRect(self, block: QTextBlock) -> QRectF:
        rect = super().blockBoundingRect(block)  # the call also lays out the block if necessary
        if not block.isValid():
            return rect
        layout = block.layout()
        # height of the document's margin below the lines, in px
        below = rect.height() - layout.boundingRect().bottom()
        count = layout.lineCount()
        for number in reversed(range(count)):
            line = layout.lineAt(number)
            above = 0.0 if self.baseline is None else self.baseline - line.ascent()
            place = QPointF(line.x(), number * self.line_height + above)
            if line.position() == place:
                break  # all lines above this one are placed correctly already
            line.setPosition(place)
        rect.setHeight(count * self.line_height + below)
        return rect

    def paragraphs(self) -> Iterator[QTextLayout]:
        """Yield the paragraphs one by one. A paragraph is laid out just before it is yielded."""
        block = self.document().begin()
        while block.isValid():
            self.blockBoundingRect(block)
            yield block.layout()
            block = block.next()


class Sentences(QLabel):
    """A label that wraps plain text, with the line height of the text style `kind`."""

    def __init__(self, parent: QWidget, kind: str = "ui", text: str = "") -> None:
        super().__init__(parent)
        self._style = LABEL_TYPES[kind]
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
        super().setText(as_lines(arg__1, line_height(self, self._style)) if arg__1 else "")

    @override
    def changeEvent(self, arg__1: QEvent) -> None:
        super().changeEvent(arg__1)
        if arg__1.type() is QEvent.Type.FontChange:
            self.setText(self._text)


def line_height(widget: QWidget, style: TextStyle) -> int:
    """Return the line height of a style, scaled as the style sheet has scaled the widget's font."""
    size = widget.font().pixelSize()  # -1 before the style sheet has set the font
    return style.line if size <= 0 else round(style.line * size / style.size)


def as_lines(text: str, line_height: int) -> str:
    """Return plain text as an HTML paragraph with lines of line_height px."""
    lines = escape(text, quote=False).replace("\n", "<br>")
    return f'<p style="margin: 0; line-height: {line_height}px">{lines}</p>'
