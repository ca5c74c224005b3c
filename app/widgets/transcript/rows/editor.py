"""The row that reserves the space for the editor of a message. Used on the main thread only."""

from __future__ import annotations

from PySide6.QtCore import QSize
from typing_extensions import override

from app.widgets.transcript.rows.row import Paint, TranscriptRow


class EditorRow(TranscriptRow):
    """An empty row that reserves the space for the editor."""

    def __init__(self, size: QSize) -> None:
        self.size = size

    @override
    def measure(self, width: int) -> int:
        return self.size.height()

    @override
    def paint(self, paint: Paint) -> None:
        """Paint nothing, because the editor is a widget."""
