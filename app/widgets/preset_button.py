"""The button with the menu of presets: apply, save, delete, set the default for a model."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QWidget

from app.conversation.preset import Presets, preset_of
from app.conversation.tree import Conversation
from app.theme.tokens import Size
from app.widgets.button import Button
from app.widgets.menu import Menu
from app.widgets.menu_text import plain
from app.widgets.preset_menu import fill_defaults
from app.widgets.preset_sheet import PresetSheet
from app.words import inspector as words


class PresetButton(Button):
    """A button that opens the menu of presets.

    Its label is the name of the preset that equals the shown setup, if there is one.
    """

    chosen = Signal(object)  # argument: the Preset to apply
    saved = Signal(str)  # argument: name of the new preset
    deleted = Signal(str)  # argument: name of the preset to delete
    # arguments: model path, name of the preset (empty for no preset)
    default_chosen = Signal(str, str)

    def __init__(self, parent: QWidget) -> None:
        super().__init__("", parent)
        self._presets = Presets()
        self._model_path = self._model_name = self._current = ""
        self.setProperty("kind", "chip")
        self.setToolTip(words.PRESET_TIP)
        self._menu = Menu(self)
        self._menu.aboutToShow.connect(self._fill)
        self.setMenu(self._menu)

    def show_presets(
        self, presets: Presets, conversation: Conversation, model_path: str, model_name: str
    ) -> None:
        self._presets = presets
        self._model_path, self._model_name = model_path, model_name
        self._current = next(
            (
                name
                for name, preset in presets.by_name.items()
                if preset == preset_of(conversation, name)
            ),
            "",
        )
        text = words.preset(self._current) if self._current else words.NO_PRESET
        self.setAccessibleName(text)
        mode, room = Qt.TextElideMode.ElideRight, Size.SIDEBAR_MIN
        self.setText(plain(self.fontMetrics().elidedText(text, mode, room)))

    def _fill(self) -> None:
        """Build the menu from the current presets and model."""
        menu, names = self._menu, list(self._presets.by_name)
        for submenu in menu.findChildren(Menu):
            submenu.deleteLater()
        menu.clear()
        for name in names:
            action = menu.addAction(plain(name))
            action.setCheckable(True)
            action.setChecked(name == self._current)
            action.triggered.connect(partial(self._choose, name))
        menu.addSeparator()
        menu.addAction(words.SAVE_PRESET, self._ask)
        if not names:
            return
        if self._model_path:
            defaults = menu.add_menu(words.new_chats_with(plain(self._model_name)))
            fill_defaults(
                defaults,
                self._presets,
                self._model_path,
                words.BEGIN_WITHOUT_PRESET,
                partial(self.default_chosen.emit, self._model_path),
            )
        deleting = menu.add_menu(words.DELETE_PRESET)
        for name in names:
            deleting.addAction(plain(name), partial(self.deleted.emit, name))

    def _choose(self, name: str, *_checked: object) -> None:
        self.chosen.emit(self._presets.by_name[name])

    def _ask(self) -> None:
        sheet = PresetSheet(self._presets.by_name, self._current, self)
        sheet.named.connect(self.saved)
        sheet.open()
