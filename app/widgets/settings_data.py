"""The part of the settings about the data folder: where it is, move it, delete an old copy."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QWidget
from typing_extensions import override

from app.controllers.data_folder import DataFolder
from app.viewmodels.figures import file_size
from app.widgets import folders
from app.widgets.button import Button
from app.widgets.data_folder_dialogs import ask_to_delete_old, move_data
from app.widgets.line_height import Sentences
from app.widgets.settings_page import SettingsPage
from app.words import storage as words, window


class DataPage(SettingsPage):
    """The rows of the data folder. It looks at the folder when it is shown."""

    def __init__(self, data: DataFolder, parent: QWidget) -> None:
        super().__init__(parent)
        self._data = data
        self.folder = Sentences(self)
        self.show_folder = Button(window.SHOW_FOLDER, self)
        self.move_button = Button(words.MOVE, self)
        self.backups = Sentences(self)
        self.old = Sentences(self, "small")
        self.delete_old = Button(words.DELETE_OLD, self)
        self._build()
        self._connect()
        self._refresh()

    def _build(self) -> None:
        self.move_button.setAccessibleName(words.MOVE_TITLE)
        self.folder.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.old.setProperty("tone", "secondary")
        for line in (self.folder, self.backups):
            line.setProperty("kind", "row")
        self.add_row(words.DATA_FOLDER, self.folder, fills=True)
        self.add_buttons(self.show_folder, self.move_button)
        self.add_note(words.DATA_NOTE)
        self.add_row("", self.old, fills=True)
        self.add_row("", self.delete_old)
        self.add_row(words.BACKUPS, self.backups, fills=True)

    def _connect(self) -> None:
        self.show_folder.clicked.connect(lambda: folders.show_folder(self._data.folder))
        self.move_button.clicked.connect(lambda: move_data(self.window(), self._data))
        self.delete_old.clicked.connect(lambda: ask_to_delete_old(self.window(), self._data))
        self._data.changed.connect(self._refresh)

    def _refresh(self) -> None:
        self.folder.setText(str(self._data.folder))
        found = self._data.figures
        self.backups.setText(words.backups(found.count, file_size(found.num_bytes)))
        old = self._data.old_folders
        self.old.setText(words.old_copy(", ".join(map(str, old))))
        for one in (self.old, self.delete_old):
            one.setVisible(bool(old))

    @override
    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._data.look()
