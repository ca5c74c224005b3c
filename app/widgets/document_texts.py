"""Opens the texts of files: at words that an answer quotes, at searched words, or at the start."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QObject, Qt
from PySide6.QtWidgets import QWidget

from app.controllers.core import Core
from app.conversation.attachments import Attachment
from app.conversation.quotes import QuotedRange
from app.conversation.tree import NodeId
from app.theme.palette import Theme
from app.widgets.attaching import Attaching
from app.widgets.text_window import TextWindow
from app.widgets.transcript.view import TranscriptView


class DocumentTexts(QObject):
    """The window with the text of a file. It is created when it is first asked for."""

    def __init__(
        self, theme: Theme, core: Core, view: TranscriptView, attaching: Attaching
    ) -> None:
        super().__init__(view)
        self._theme = theme
        self._core = core
        self._view = view
        self.window: TextWindow | None = None  # of the main window
        view.click_actions.quote_requested.connect(self._open_quote)
        attaching.text_requested.connect(self.open)
        core.search.file_located.connect(self.open)

    def _open_quote(self, key: str, place: int) -> None:
        """Show one of the documents that an answer of the chat on show quotes."""
        conversation = self._core.desk.get(self._core.library.current)
        quoted = self._core.quotes.of(conversation).get(NodeId(key), ())
        if place < len(quoted):
            self.open(quoted[place].document, quoted[place].ranges)

    def open(self, file: Attachment, passages: Sequence[QuotedRange] = ()) -> None:
        if self.window is None:
            self.window = TextWindow(self._theme, self._view.window())
        self.window.open(file, passages)

    def open_over(self, file: Attachment, sheet: QWidget) -> None:
        """Show a text in a window of an open sheet, which blocks the other windows."""
        window = TextWindow(self._theme, sheet)
        window.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        window.open(file)
