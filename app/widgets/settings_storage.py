"""The settings page about cached state in memory and on disk, and about stored pictures."""

from __future__ import annotations

from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QWidget
from typing_extensions import override

from app.controllers.preferences import Preferences
from app.controllers.storage import Storage
from app.theme.palette import Theme
from app.viewmodels.storage import disk_text, memory_text, pictures_text, written_text
from app.widgets.button import Button
from app.widgets.check_box import CheckBox
from app.widgets.line_height import Sentences
from app.widgets.message_sheet import ask_before
from app.widgets.segments import Segments
from app.widgets.settings_page import SettingsPage
from app.words import memory_map as map_words, settings as settings_words, storage as words

_SIZES = (0, 5, 20, 100)  # choices of disk space in GB; 0: automatic


class StoragePage(SettingsPage):
    """The Storage page of the settings. Its figures are live while it is shown."""

    def __init__(
        self,
        theme: Theme,
        preferences: Preferences,
        storage: Storage,
        parent: QWidget,
    ) -> None:
        super().__init__(parent)
        self._preferences = preferences
        self._storage = storage
        self.memory = Sentences(self)
        self.show_chats = Button(map_words.SHOW, self)
        self.keep = CheckBox(theme, words.KEEP, self)
        sizes: dict[object, str] = {one: words.gigabytes(one) for one in _SIZES}
        self.limit = Segments(words.LIMIT, sizes, self)
        self.used = Sentences(self)
        self.written = Sentences(self)
        self.clear = Button(words.CLEAR, self)
        self.pictures = Sentences(self)
        self._build()
        self._connect()
        self._refresh()
        self._show_figures()

    def _build(self) -> None:
        self.clear.setAccessibleName(words.CLEAR_NAME)
        for figures in (self.memory, self.used, self.written, self.pictures):
            figures.setProperty("kind", "row")  # the height of their labels
        self.add_row(words.MEMORY, self.memory, fills=True)
        self.add_row("", self.show_chats)
        self.add_row("", self.keep)
        self.add_note(words.KEEP_NOTE)
        self.add_row(words.LIMIT, self.limit)
        self.add_row(words.USED, self.used, fills=True)
        self.add_row(words.WRITTEN, self.written, fills=True)
        self.add_row("", self.clear)
        self.add_note(words.CLEAR_NOTE)
        self.add_row(settings_words.PICTURES, self.pictures, fills=True)
        self.add_note(words.PICTURES_NOTE)
        self.end()
        self.order()

    def _connect(self) -> None:
        self.keep.clicked.connect(self._preferences.toggle_keep_on_disk)
        self.limit.chosen.connect(self._on_limit)
        self.clear.clicked.connect(self._ask_to_clear)
        self._preferences.changed.connect(self._refresh)
        self._storage.changed.connect(self._show_figures)

    def _ask_to_clear(self) -> None:
        """Ask before the state on disk is deleted, because it can take minutes to make again."""
        clear = self._storage.clear
        ask_before(self, words.CLEAR_QUESTION, words.CLEAR_NOTE, words.CLEAR_NOW, clear)

    def _on_limit(self, size: object) -> None:
        self._preferences.change(disk_gb=size)

    def _refresh(self) -> None:
        value = self._preferences.value
        self.keep.setChecked(value.keep_on_disk)
        self.limit.setEnabled(value.keep_on_disk)
        if value.disk_gb in self.limit.buttons:
            self.limit.show_value(value.disk_gb)

    def _show_figures(self) -> None:
        found = self._storage.figures
        self.memory.setText(memory_text(found))
        self.used.setText(disk_text(found))
        self.written.setText(written_text(found))
        self.pictures.setText(pictures_text(self._storage.picture_bytes))

    @override
    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._storage.watch(shown=True)

    @override
    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._storage.watch(shown=False)
