"""Conversations as pages: a PDF file, or the document that the print dialog prints.

Qt lays out the HTML of the export. Nothing is loaded for it: no picture from the disk, none from a
server. Main thread: the layout of a QTextDocument needs the timers of Qt's event loop.
"""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QIODevice, QLocale, QMarginsF, QSaveFile, QUrl
from PySide6.QtGui import QFontDatabase, QPageLayout, QPageSize, QPdfWriter, QTextDocument
from typing_extensions import override

from app.conversation.tree import Conversation
from app.exchange import documents
from app.words import problems as words
from engine.errors import DiskError

_MARGIN_MM = 12.0  # QTextDocument adds margins of 2 cm of its own, with the page number


class PageDocument(QTextDocument):
    """The messages on show of a conversation, for pages."""

    def __init__(self, conversation: Conversation) -> None:
        super().__init__()
        fixed = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont).family()
        # The subset of CSS that Qt knows.
        self.setDefaultStyleSheet(
            "h1 { font-size: 18pt } h2 { font-size: 10pt; color: #555; margin-top: 16px }"
            f' pre, code {{ font-family: "{fixed}"; font-size: 9pt }}'
            " pre { background: #f3f3f5 } blockquote, details { color: #555 }"
            " table { border-collapse: collapse } td, th { border: 1px solid #ccc; padding: 3px }"
        )
        self.setHtml(documents.to_html(conversation))

    @override
    def loadResource(self, type: int, name: QUrl | str) -> object:
        """Return nothing, so that a picture in a message is left out."""
        return None


def page_layout() -> QPageLayout:
    """Return the page of this country, A4 or Letter."""
    is_metric = QLocale().measurementSystem() is QLocale.MeasurementSystem.MetricSystem
    size = QPageSize(QPageSize.PageSizeId.A4 if is_metric else QPageSize.PageSizeId.Letter)
    margins = QMarginsF(_MARGIN_MM, _MARGIN_MM, _MARGIN_MM, _MARGIN_MM)
    unit = QPageLayout.Unit.Millimeter
    return QPageLayout(size, QPageLayout.Orientation.Portrait, margins, unit)


def write_pdf(path: Path, conversation: Conversation) -> None:
    """Write a conversation as PDF.

    Raises:
        DiskError: the file cannot be written; an existing file is unchanged.
    """
    file = QSaveFile(str(path))
    if file.open(QIODevice.OpenModeFlag.WriteOnly):
        writer = QPdfWriter(file)
        writer.setPageLayout(page_layout())
        writer.setTitle(conversation.title)
        PageDocument(conversation).print_(writer)
        del writer  # writes the end of the file
        if file.commit():
            return
    raise DiskError(words.cannot_write(path, file.errorString()))
