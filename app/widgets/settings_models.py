"""The settings page for the folders that are searched for models."""

from __future__ import annotations

from functools import partial

from PySide6.QtGui import QAction
from PySide6.QtWidgets import QHBoxLayout, QWidget

from app.controllers.hub import HubController
from app.controllers.models import ModelsController
from app.controllers.preferences import Preferences
from app.hub.access import has_token_variable
from app.widgets.button import Button
from app.widgets.hub_fields import MirrorField, TokenField
from app.widgets.path_label import PathLabel
from app.widgets.row_list import RowList
from app.widgets.segments import Segments
from app.widgets.settings_page import SettingsPage
from app.words import settings as words

_MINUTES = (0, 5, 15, 60)  # choices of idle minutes; 0: never


class ModelsPage(SettingsPage):
    """The Models page of the settings: the user's folders, with buttons to remove and add one."""

    def __init__(
        self,
        preferences: Preferences,
        models: ModelsController,
        hub: HubController,
        add_folder: QAction,
        get_models: QAction,
        parent: QWidget,
    ) -> None:
        super().__init__(parent)
        self._preferences = preferences
        self._models = models
        self.unload_after = Segments(
            words.UNLOAD_AFTER, {one: words.after_minutes(one) for one in _MINUTES}, self
        )
        self.unload_after.chosen.connect(self._on_unload_after)
        self._list = RowList(words.NO_FOLDERS, self._row, self)
        self.add = Button(add_folder.text(), self)
        self.add.clicked.connect(add_folder.trigger)
        self.add_row(words.FOLDERS, self._list, fills=True)
        self.get = Button(get_models.text(), self)
        self.get.clicked.connect(get_models.trigger)
        self.add_row("", self.add)
        self.add_row("", self.get)
        self.add_note(f"{words.OWN_PLACES} {words.FOLDERS_NOTE}")
        self.add_row(words.UNLOAD_AFTER, self.unload_after)
        self.add_note(words.UNLOAD_NOTE)
        self.token = TokenField(hub, self)
        self.mirror = MirrorField(self)
        self.add_row(words.ACCESS, self.token)
        self.add_note(words.ACCESS_FROM_VARIABLE if has_token_variable() else words.ACCESS_NOTE)
        self.add_row(words.MIRROR, self.mirror)
        has_address = self.mirror.isEnabled()
        self.add_note(words.MIRROR_NOTE if has_address else words.MIRROR_FROM_VARIABLE)
        self.mirror.changed.connect(self._on_mirror)
        self.mirror.refused.connect(hub.failed)
        self.end()
        self._refresh()
        preferences.changed.connect(self._refresh)

    def _on_unload_after(self, minutes: object) -> None:
        self._preferences.change(unload_after_min=minutes)

    def _on_mirror(self, address: str) -> None:
        self._preferences.change(mirror=address)

    def _refresh(self) -> None:
        self.mirror.show_address(self._preferences.value.mirror)
        minutes = self._preferences.value.unload_after_min
        if minutes in self.unload_after.buttons:
            self.unload_after.show_value(minutes)
        self._list.show_names(self._preferences.value.model_folders)
        self.order()

    def _row(self, folder: str) -> QWidget:
        row = QWidget(self._list)
        layout = QHBoxLayout(row)
        layout.setContentsMargins(0, 0, 0, 0)
        label = PathLabel(row)
        label.show_path(folder)
        remove = Button(words.REMOVE, row)
        remove.setAccessibleName(words.remove(folder))
        remove.clicked.connect(partial(self._remove, folder))
        layout.addWidget(label, 1)
        layout.addWidget(remove)
        return row

    def _remove(self, folder: str, *_checked: object) -> None:
        self._models.remove_folder(folder)
