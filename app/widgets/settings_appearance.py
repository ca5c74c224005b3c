"""The settings page for theme, contrast and text size."""

from __future__ import annotations

from PySide6.QtCore import QSignalBlocker
from PySide6.QtWidgets import QHBoxLayout, QLabel, QWidget

from app.controllers.preferences import ZOOM_STEP, Preferences
from app.settings import ZOOM_MAX, ZOOM_MIN, Appearance
from app.theme.palette import Theme
from app.theme.tokens import Size, Space
from app.widgets.check_box import CheckBox
from app.widgets.segments import Segments
from app.widgets.settings_page import SettingsPage
from app.widgets.slider import Slider
from app.words import commands, settings as words


class AppearancePage(SettingsPage):
    """The Appearance page of the settings. A change applies at once."""

    def __init__(self, theme: Theme, preferences: Preferences, parent: QWidget) -> None:
        super().__init__(parent)
        self._preferences = preferences
        self.appearance = Segments(
            words.THEME,
            {
                Appearance.LIGHT: commands.LIGHT,
                Appearance.DARK: commands.DARK,
                Appearance.SYSTEM: commands.SYSTEM,
            },
            self,
        )
        self.contrast = CheckBox(theme, commands.MORE_CONTRAST, self)
        self.zoom = Slider(self)
        self._percent = QLabel(self)
        self._build()
        self._refresh()
        self.appearance.chosen.connect(self._on_chosen)
        self.contrast.clicked.connect(preferences.toggle_contrast)
        self.zoom.valueChanged.connect(self._on_slid)
        preferences.changed.connect(self._refresh)

    def _build(self) -> None:
        self.zoom.setRange(ZOOM_MIN // ZOOM_STEP, ZOOM_MAX // ZOOM_STEP)
        self.zoom.setPageStep(2)
        self.zoom.setAccessibleName(words.TEXT_SIZE)
        self.zoom.setMinimumWidth(Size.SIDEBAR_MIN)
        sized = QWidget(self)
        row = QHBoxLayout(sized)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(Space.M)
        row.addWidget(self.zoom)
        self._percent.setProperty("kind", "row")
        row.addWidget(self._percent)
        self.add_row(words.THEME, self.appearance)
        self.add_row("", self.contrast)
        self.add_note(words.CONTRAST_NOTE)
        self.add_row(words.TEXT_SIZE, sized)
        self.end()

    def _on_chosen(self, appearance: object) -> None:
        self._preferences.change(appearance=appearance)

    def _on_slid(self, step: int) -> None:
        self._preferences.set_zoom(step * ZOOM_STEP)

    def _refresh(self) -> None:
        value = self._preferences.value
        self.appearance.show_value(value.appearance)
        self.contrast.setChecked(value.more_contrast)
        with QSignalBlocker(self.zoom):
            self.zoom.setValue(value.text_zoom // ZOOM_STEP)
        self._percent.setText(words.percent(value.text_zoom))
