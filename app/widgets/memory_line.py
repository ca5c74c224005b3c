"""The line below the model in the sidebar: how many chats are in memory, and their size."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from app.controllers.core import Core
from app.viewmodels.storage import memory_line, memory_tip
from app.widgets.quiet_line import QuietLine


class MemoryLine(QuietLine):
    """The line. It counts the listed chats with the dot for memory. Hidden if none has it."""

    def __init__(self, core: Core, parent: QWidget) -> None:
        super().__init__(parent, drops_parts=True)
        self.setObjectName("memoryLine")
        self._core = core
        for changing in (
            core.chat_states.changed,
            core.memory_map.changed,
            core.library.list_changed,
        ):
            changing.connect(self._refresh)
        self._refresh()

    def _refresh(self) -> None:
        listed, report = self._core.library.listed, self._core.memory_map.report
        num_chats = sum(one in listed for one in self._core.chat_states.in_memory)
        self.show_line(memory_line(report, num_chats), memory_tip(report))
