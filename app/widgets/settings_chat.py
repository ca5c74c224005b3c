"""The settings page for the send key, reading ahead, titles and presets."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QLabel, QWidget

from app.controllers.models import ModelsController
from app.controllers.preferences import Preferences
from app.controllers.presets import PresetsController
from app.settings import PictureSize
from app.theme.icons import Icon
from app.theme.palette import Theme
from app.viewmodels.models import shown_name
from app.widgets.button import Button
from app.widgets.check_box import CheckBox
from app.widgets.icon_button import IconButton
from app.widgets.menu import Menu
from app.widgets.menu_text import plain
from app.widgets.message_edit import break_key, send_key
from app.widgets.preset_menu import fill_defaults
from app.widgets.row_list import RowList
from app.widgets.segments import Segments
from app.widgets.settings_page import SettingsPage
from app.words import attachments, commands, settings as words


class ChatPage(SettingsPage):
    """The Chat page of the settings. A change applies at once."""

    def __init__(
        self,
        theme: Theme,
        preferences: Preferences,
        presets: PresetsController,
        models: ModelsController,
        parent: QWidget,
    ) -> None:
        super().__init__(parent)
        self._theme = theme
        self._preferences = preferences
        self._presets = presets
        self._models = models
        keys: dict[object, str] = {one: send_key(return_sends=one) for one in (True, False)}
        self.send_key = Segments(words.SEND_WITH, keys, self)
        sizes: dict[object, str] = {one: attachments.SIZES[one.value] for one in PictureSize}
        self.picture_size = Segments(words.PICTURES, sizes, self)
        self.read_ahead = CheckBox(theme, commands.READ_AHEAD, self)
        self.name_chats = CheckBox(theme, words.NAME_CHATS, self)
        self.default = Button("", self)
        self._menu = Menu(self.default)
        self._list = RowList(words.NO_PRESETS, self._row, self)
        self._build()
        self._connect()
        self._refresh()
        self._refresh_presets()

    def _build(self) -> None:
        self.default.setMenu(self._menu)
        self.add_row(words.SEND_WITH, self.send_key)
        self._send_note = self.add_note()
        self.add_row(words.PICTURES, self.picture_size)
        self.add_note(words.PICTURES_NOTE)
        self.add_row("", self.read_ahead)
        self.add_note(words.READ_AHEAD_NOTE)
        self.add_row("", self.name_chats)
        self.add_note(words.NAME_CHATS_NOTE)
        self._default_label = self.add_row(words.NEW_CHATS, self.default)
        self.add_row(words.PRESETS, self._list, fills=True)
        self.end()

    def _connect(self) -> None:
        self.send_key.chosen.connect(self._on_key_chosen)
        self.picture_size.chosen.connect(self._on_size_chosen)
        self.read_ahead.clicked.connect(self._preferences.toggle_read_ahead)
        self.name_chats.clicked.connect(self._preferences.toggle_name_chats)
        self._menu.aboutToShow.connect(self._fill)
        self._preferences.changed.connect(self._refresh)
        self._presets.changed.connect(self._refresh_presets)
        self._models.status_changed.connect(self._refresh_presets)

    def _on_key_chosen(self, return_sends: object) -> None:
        self._preferences.change(return_sends=return_sends)

    def _on_size_chosen(self, size: object) -> None:
        self._preferences.change(picture_size=size)

    def _refresh(self) -> None:
        value = self._preferences.value
        self.send_key.show_value(value.return_sends)
        self._send_note.setText(words.new_line(break_key(return_sends=value.return_sends)))
        self.picture_size.show_value(value.picture_size)
        self.read_ahead.setChecked(value.read_ahead)
        self.name_chats.setChecked(value.name_chats)

    def _refresh_presets(self) -> None:
        presets, path = self._presets.value, self._models.status.path
        name = presets.by_model.get(path, "")
        self.default.setText(plain(name) or words.NO_PRESET)
        model = shown_name(self._models.status, self._models.cards)
        self.default.setAccessibleName(words.new_chats_with(model))
        self.default.setToolTip(words.new_chats_with(model))
        for part in (self.default, self._default_label):
            part.setVisible(bool(path and presets.by_name))
        self._list.show_names(list(presets.by_name))
        self.order()

    def _row(self, name: str) -> QWidget:
        row = QWidget(self._list)
        layout = QHBoxLayout(row)
        layout.setContentsMargins(0, 0, 0, 0)
        delete = IconButton(self._theme, Icon.TRASH, words.delete_preset(name), row)
        delete.clicked.connect(partial(self._delete, name))
        label = QLabel(name, row)
        label.setTextFormat(Qt.TextFormat.PlainText)
        label.setProperty("kind", "row")
        layout.addWidget(label, 1)
        layout.addWidget(delete)
        return row

    def _delete(self, name: str, *_checked: object) -> None:
        self._presets.delete(name)

    def _fill(self) -> None:
        """Fill the menu that chooses the preset for new chats with the model in use."""
        self._menu.clear()
        path = self._models.status.path
        choose = partial(self._presets.choose, path)
        fill_defaults(self._menu, self._presets.value, path, words.NO_PRESET, choose)
