"""The commands of the Help menu, and their sheets. Main thread."""

from __future__ import annotations

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QWidget

from app.controllers.core import Core
from app.theme.palette import Theme
from app.widgets.commands import Actions, CommandId, connect_actions
from app.widgets.dialogs import ask_where_to_save, show_about
from app.widgets.remembering import show_remembering
from app.widgets.shortcut_sheet import show_shortcuts
from app.words import diagnostics


class HelpCommands(QObject):
    """The commands. Their sheets open on the main window."""

    def __init__(self, theme: Theme, core: Core, window: QWidget, actions: Actions) -> None:
        super().__init__(window)
        self._core = core
        self._window = window
        slots = {
            CommandId.REMEMBERING: lambda: show_remembering(theme, core.time_saved, window),
            CommandId.SHORTCUTS: self._show_shortcuts,
            CommandId.DIAGNOSTICS: self._save_diagnostics,
            CommandId.ABOUT: lambda: show_about(window),
        }
        connect_actions(actions, slots)

    def _show_shortcuts(self) -> None:
        value = self._core.preferences.value
        show_shortcuts(self._window, value.shortcuts, return_sends=value.return_sends)

    def _save_diagnostics(self) -> None:
        ask_where_to_save(self._window, diagnostics.FILE_NAME, self._core.diagnostics.save)
