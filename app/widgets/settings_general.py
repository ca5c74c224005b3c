"""The settings page for the start and the end of the app."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from app.controllers.login import OpenAtLogin
from app.controllers.preferences import Preferences
from app.theme.palette import Theme
from app.widgets.check_box import CheckBox
from app.widgets.settings_page import SettingsPage
from app.words import settings as words


class GeneralPage(SettingsPage):
    """The General page of the settings. A change applies at once."""

    def __init__(
        self, theme: Theme, preferences: Preferences, login: OpenAtLogin, parent: QWidget
    ) -> None:
        super().__init__(parent)
        self._preferences = preferences
        self._login = login
        self.at_login = CheckBox(theme, words.OPEN_AT_LOGIN, self)
        self.reopen = CheckBox(theme, words.REOPEN, self)
        self.confirm = CheckBox(theme, words.CONFIRM_QUIT, self)
        self._build()
        self.at_login.clicked.connect(login.toggle)
        self.reopen.clicked.connect(preferences.toggle_reopen_last)
        self.confirm.clicked.connect(preferences.toggle_confirm_quit)
        login.changed.connect(self._refresh)
        preferences.changed.connect(self._refresh)
        self._refresh()

    def _build(self) -> None:
        first, *others = [self.at_login, self.reopen] if self._login.is_possible else [self.reopen]
        self.at_login.setVisible(self._login.is_possible)
        self.add_row(words.AT_START, first)
        for box in others:
            self.add_row("", box)
        self.add_note(words.REOPEN_NOTE)
        self.add_row(words.AT_END, self.confirm)
        self.add_note(words.CONFIRM_QUIT_NOTE)
        self.end()

    def _refresh(self) -> None:
        value = self._preferences.value
        self.at_login.setChecked(self._login.is_on)
        self.reopen.setChecked(value.reopen_last)
        self.confirm.setChecked(value.confirm_quit)
