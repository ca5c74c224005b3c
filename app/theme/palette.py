"""The look that is in force: colours, fonts and icons, light, dark or as the system says.

Theme is made once by main and handed down; widgets repaint on its `changed` signal. Main thread.
"""

from __future__ import annotations

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QApplication

from app.settings import Appearance
from app.theme.fonts import Fonts, installed_fonts
from app.theme.icons import Icons
from app.theme.stylesheet import make_palette, make_style_sheet
from app.theme.tokens import DARK, LIGHT, Colors


class Theme(QObject):
    """Dresses the application and tells widgets which colours, fonts and icons to paint with."""

    changed = Signal()

    def __init__(self, app: QApplication, appearance: Appearance = Appearance.SYSTEM) -> None:
        super().__init__(app)
        self._app = app
        self._appearance = appearance
        self._colors: Colors | None = None
        self.fonts: Fonts = installed_fonts()
        self.icons = Icons()
        app.setStyle("Fusion")  # the one style that draws with our palette on every system
        app.styleHints().colorSchemeChanged.connect(self._apply)
        self.set_appearance(appearance)

    @property
    def appearance(self) -> Appearance:
        return self._appearance

    @property
    def colors(self) -> Colors:
        assert self._colors is not None, "set by __init__"
        return self._colors

    @property
    def is_dark(self) -> bool:
        return self._colors is DARK

    def set_appearance(self, appearance: Appearance) -> None:
        """Switch at once; native window frames follow."""
        self._appearance = appearance
        hints = self._app.styleHints()
        match appearance:
            case Appearance.SYSTEM:
                hints.unsetColorScheme()
            case Appearance.LIGHT:
                hints.setColorScheme(Qt.ColorScheme.Light)
            case Appearance.DARK:
                hints.setColorScheme(Qt.ColorScheme.Dark)
        self._apply()

    def _apply(self) -> None:
        colors = self._wanted_colors()
        if colors is self._colors:
            return
        self._colors = colors
        self._app.setPalette(make_palette(colors))
        self._app.setStyleSheet(make_style_sheet(colors, self.fonts))
        self.changed.emit()

    def _wanted_colors(self) -> Colors:
        match self._appearance:
            case Appearance.LIGHT:
                return LIGHT
            case Appearance.DARK:
                return DARK
            case Appearance.SYSTEM:
                scheme = self._app.styleHints().colorScheme()
                return DARK if scheme is Qt.ColorScheme.Dark else LIGHT
