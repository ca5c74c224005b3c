"""The menu commands for settings: appearance, zoom, inspector, reading ahead. Main thread."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QObject

from app.controllers.preferences import Preferences
from app.settings import Appearance
from app.widgets.commands import Actions, CommandId, connect_actions
from app.widgets.key_choices import Choices, apply_choices

APPEARANCES = {
    Appearance.LIGHT: CommandId.LIGHT,
    Appearance.DARK: CommandId.DARK,
    Appearance.SYSTEM: CommandId.SYSTEM,
}


class PreferenceCommands(QObject):
    """The commands, with the check marks and the shortcuts that follow from the settings."""

    def __init__(self, preferences: Preferences, actions: Actions, parent: QObject) -> None:
        super().__init__(parent)
        self._preferences = preferences
        self._actions = actions
        self._choices: Choices = {}  # the changed shortcuts that the actions have
        slots = {
            CommandId.INSPECTOR: preferences.toggle_inspector,
            CommandId.CONTRAST: preferences.toggle_contrast,
            CommandId.ZOOM_IN: preferences.zoom_in,
            CommandId.ZOOM_OUT: preferences.zoom_out,
            CommandId.ZOOM_RESET: preferences.zoom_reset,
            CommandId.READ_AHEAD: preferences.toggle_read_ahead,
            CommandId.PREVIEW_EDITS: preferences.toggle_previews,
        }
        connect_actions(actions, slots)
        change = preferences.change
        connect_actions(
            actions, {id_: partial(change, appearance=one) for one, id_ in APPEARANCES.items()}
        )
        preferences.changed.connect(self._refresh)
        self._refresh()

    def _refresh(self) -> None:
        value, actions = self._preferences.value, self._actions
        if value.shortcuts != self._choices:
            self._choices = value.shortcuts
            apply_choices(actions, value.shortcuts)
        actions[CommandId.CONTRAST].setChecked(value.more_contrast)
        actions[APPEARANCES[value.appearance]].setChecked(True)
        actions[CommandId.INSPECTOR].setChecked(value.inspector_visible)
        actions[CommandId.READ_AHEAD].setChecked(value.read_ahead)
        actions[CommandId.PREVIEW_EDITS].setChecked(value.preview_edits)
