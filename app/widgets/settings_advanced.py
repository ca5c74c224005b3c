"""The settings page for what few people change: speed, memory, data folder, several Macs."""

from __future__ import annotations

from PySide6.QtCore import QEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget
from typing_extensions import override

from app.controllers.core import Core
from app.controllers.preferences import Preferences
from app.settings import MEMORY_GB
from app.theme.palette import Theme
from app.theme.tokens import Space
from app.widgets.check_box import CheckBox
from app.widgets.segments import Segments
from app.widgets.settings_data import DataPage
from app.widgets.settings_page import SettingsPage
from app.widgets.settings_several import SeveralPage
from app.words import settings as words, storage


class EnginePage(SettingsPage):
    """The rows for speculation and for the memory of chats."""

    def __init__(self, theme: Theme, preferences: Preferences, parent: QWidget) -> None:
        super().__init__(parent)
        self._preferences = preferences
        self.faster = CheckBox(theme, words.FASTER_ANSWERS, self)
        sizes: dict[object, str] = {one: storage.gigabytes(one) for one in MEMORY_GB}
        self.memory = Segments(words.MEMORY_LIMIT, sizes, self)
        self.add_row("", self.faster)
        self.add_note(words.FASTER_NOTE)
        self.add_row(words.MEMORY_LIMIT, self.memory)
        self.add_note(words.MEMORY_NOTE)
        self.faster.clicked.connect(preferences.toggle_faster_answers)
        self.memory.chosen.connect(self._on_memory)
        preferences.changed.connect(self._refresh)
        self._refresh()

    def _on_memory(self, size: object) -> None:
        self._preferences.change(memory_gb=size)

    def _refresh(self) -> None:
        value = self._preferences.value
        self.faster.setChecked(value.faster_answers)
        self.memory.show_value(value.memory_gb)


class AdvancedPage(QWidget):
    """The Advanced page of the settings: three groups of rows, one below the other."""

    def __init__(self, theme: Theme, core: Core, parent: QWidget) -> None:
        super().__init__(parent)
        self.engine = EnginePage(theme, core.preferences, self)
        self.data = DataPage(core.data_folder, self)
        self.several = SeveralPage(theme, core.several, self)
        self._groups = groups = (self.engine, self.data, self.several)
        self.controls = [control for group in groups for control in group.controls]
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, Space.L)
        layout.setSpacing(0)
        for group in groups:
            group.join(is_first=group is self.engine)
            layout.addWidget(group)
        layout.addStretch(1)

    @override
    def event(self, event: QEvent) -> bool:
        if event.type() is QEvent.Type.LayoutRequest:  # the labels may have another font
            width = max(group.label_width for group in self._groups)
            for group in self._groups:
                group.align_labels(width)
        return super().event(event)
