"""The line below the model in the sidebar: how many chats are in memory, and their size."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget
from typing_extensions import override

from app.controllers.storage import Storage
from app.theme.tokens import Space
from app.viewmodels.storage import memory_line, memory_tip
from app.widgets.button import Button


class MemoryLine(Button):
    """A quiet button with one line of text. Hidden while no chat is in memory."""

    def __init__(self, storage: Storage, parent: QWidget) -> None:
        super().__init__("", parent)
        self.setObjectName("memoryLine")
        self.setProperty("kind", "row")
        # A long text is elided and does not widen the sidebar.
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self._storage = storage
        storage.changed.connect(self._refresh)
        self._refresh()

    def _refresh(self) -> None:
        line = memory_line(self._storage.figures)
        self.setVisible(bool(line))
        self.setAccessibleName(line)
        self.setToolTip(memory_tip(self._storage.figures))
        self._elide()

    def _elide(self) -> None:
        inner = self.width() - 2 * Space.M  # inside the padding, which the style sheet sets
        right = Qt.TextElideMode.ElideRight
        self.setText(self.fontMetrics().elidedText(self.accessibleName(), right, inner))

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._elide()

    @override
    def changeEvent(self, e: QEvent) -> None:
        super().changeEvent(e)
        if e.type() is QEvent.Type.FontChange:
            self._elide()
