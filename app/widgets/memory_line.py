"""The line below the model in the sidebar: how many chats are in memory, and their size."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from app.controllers.storage import Storage
from app.viewmodels.storage import memory_line, memory_tip
from app.widgets.quiet_line import QuietLine


class MemoryLine(QuietLine):
    """The line. Hidden while no chat is in memory."""

    def __init__(self, storage: Storage, parent: QWidget) -> None:
        super().__init__(parent, drops_parts=True)
        self.setObjectName("memoryLine")
        self._storage = storage
        storage.changed.connect(self._refresh)
        self._refresh()

    def _refresh(self) -> None:
        figures = self._storage.figures
        self.show_line(memory_line(figures), memory_tip(figures))
