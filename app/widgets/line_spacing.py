"""Lines of a plain text field as far apart as a type's, which Qt sets by the font alone. Main thread."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QTextBlock, QTextDocument
from PySide6.QtWidgets import QPlainTextDocumentLayout, QPlainTextEdit
from typing_extensions import override

from app.widgets.transcript_look import Face


class SpacedLayout(QPlainTextDocumentLayout):
    """The layout of a field's document; its lines stand where a TextFlow's do."""

    def __init__(self, field: QPlainTextEdit, face: Face) -> None:
        document = QTextDocument(field)
        super().__init__(document)
        self.face = face
        document.setDocumentLayout(self)
        document.setDocumentMargin(0)
        field.setDocument(document)

    @override
    def blockBoundingRect(self, block: QTextBlock) -> QRectF:
        rect = super().blockBoundingRect(block)  # lays the lines out
        lines, face = block.layout(), self.face
        for number in range(lines.lineCount()):
            line = lines.lineAt(number)
            line.setPosition(QPointF(0, number * face.line + face.baseline - line.ascent()))
        rect.setHeight(lines.lineCount() * face.line)
        return rect
