"""The settings page for the folders that are searched for models."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QWidget

from app.controllers.models import ModelsController
from app.controllers.preferences import Preferences
from app.theme.tokens import Size
from app.widgets.row_list import RowList
from app.widgets.settings_page import SettingsPage
from app.words import settings as words


class ModelsPage(SettingsPage):
    """The Models page of the settings: the user's folders, with buttons to remove and add one."""

    def __init__(
        self,
        preferences: Preferences,
        models: ModelsController,
        add_folder: QAction,
        get_models: QAction,
        parent: QWidget,
    ) -> None:
        super().__init__(parent)
        self._preferences = preferences
        self._models = models
        self._list = RowList(words.NO_FOLDERS, self._row, self)
        self.add = QPushButton(add_folder.text(), self)
        self.add.clicked.connect(add_folder.trigger)
        self.add_row(words.FOLDERS, self._list, fills=True)
        self.get = QPushButton(get_models.text(), self)
        self.get.clicked.connect(get_models.trigger)
        self.add_row("", self.add)
        self.add_row("", self.get)
        self.add_note(f"{words.OWN_PLACES} {words.FOLDERS_NOTE}")
        self.end()
        self._refresh()
        preferences.changed.connect(self._refresh)

    def _refresh(self) -> None:
        self._list.show_names(self._preferences.value.model_folders)
        self.order()

    def _row(self, folder: str) -> QWidget:
        row = QWidget(self._list)
        layout = QHBoxLayout(row)
        layout.setContentsMargins(0, 0, 0, 0)
        label = QLabel(row)
        room = Size.INSPECTOR
        label.setText(label.fontMetrics().elidedText(folder, Qt.TextElideMode.ElideMiddle, room))
        label.setToolTip(folder)
        label.setTextFormat(Qt.TextFormat.PlainText)
        remove = QPushButton(words.REMOVE, row)
        remove.setAccessibleName(words.remove(folder))
        remove.clicked.connect(partial(self._remove, folder))
        layout.addWidget(label, 1)
        layout.addWidget(remove)
        return row

    def _remove(self, folder: str, *_checked: object) -> None:
        self._models.remove_folder(folder)
