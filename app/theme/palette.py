"""The current appearance: light, dark or that of the system; normal or high contrast. Main thread.

main.py makes one Theme and passes it to all widgets. They repaint when the Theme emits `changed`.
"""

from __future__ import annotations

import math

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QApplication

from app.settings import Appearance
from app.theme.fonts import Fonts, installed_fonts
from app.theme.icons import Icons
from app.theme.stylesheet import make_palette, make_style_sheet
from app.theme.tokens import DARK, DARK_SHARP, LIGHT, LIGHT_SHARP, Colors, TextStyle


class Theme(QObject):
    """The colours, fonts and icons that widgets paint with.

    Theme also sets the palette and the style sheet of the application. It applies them again when
    the user or the system changes the appearance.
    """

    changed = Signal()
    zoomed = Signal()  # the size of the text that people read and type has changed

    def __init__(self, app: QApplication, appearance: Appearance = Appearance.SYSTEM) -> None:
        super().__init__(app)
        self._app = app
        self._appearance = appearance
        self._is_sharp = False
        self.zoom = 1.0  # factor of the text that people read and type
        self._colors: Colors | None = None
        self.fonts: Fonts = installed_fonts()
        self.icons = Icons()
        app.setStyle("Fusion")  # the only style that paints with our palette on every platform
        # Keep this reference. Without it, the style hints and their accessibility() object are
        # destroyed.
        self._hints = app.styleHints()
        self._hints.colorSchemeChanged.connect(self._apply)
        self._hints.accessibility().contrastPreferenceChanged.connect(self._apply)
        self.set_appearance(appearance)

    @property
    def appearance(self) -> Appearance:
        return self._appearance

    @property
    def colors(self) -> Colors:
        assert self._colors is not None, "__init__ sets the colours"
        return self._colors

    @property
    def is_dark(self) -> bool:
        return self._colors in (DARK, DARK_SHARP)

    def set_appearance(self, appearance: Appearance) -> None:
        """Switch the appearance of the app and of native window frames at once."""
        self._appearance = appearance
        hints = self._hints
        match appearance:
            case Appearance.SYSTEM:
                hints.unsetColorScheme()
            case Appearance.LIGHT:
                hints.setColorScheme(Qt.ColorScheme.Light)
            case Appearance.DARK:
                hints.setColorScheme(Qt.ColorScheme.Dark)
        self._apply()

    def set_sharp(self, sharp: bool) -> None:  # noqa: FBT001 (a state)
        """Turn on high contrast if `sharp`, else follow the contrast setting of the system."""
        self._is_sharp = sharp
        self._apply()

    def set_zoom(self, zoom: float) -> None:
        """Scale the text that people read and type by a factor from 0.8 to 2.0."""
        if zoom != self.zoom:
            self.zoom = zoom
            self.zoomed.emit()

    def scaled(self, length: float, most: float = math.inf) -> int:
        """Return a length in px that grows with the text, at most by the factor `most`."""
        return round(length * min(max(1.0, self.zoom), most))

    def zoomed_font(self, style: TextStyle) -> QFont:
        """Return the font of a style of the type scale, scaled by the zoom."""
        return self.fonts.font(style, zoom=self.zoom)

    def _apply(self) -> None:
        colors = self._wanted_colors()
        if colors is self._colors:
            return
        self._colors = colors
        self._app.setPalette(make_palette(colors))
        self._app.setStyleSheet(make_style_sheet(colors, self.fonts))
        self.changed.emit()

    def _wanted_colors(self) -> Colors:
        wanted = self._hints.accessibility().contrastPreference()
        is_sharp = self._is_sharp or wanted is Qt.ContrastPreference.HighContrast
        if self._wants_dark():
            return DARK_SHARP if is_sharp else DARK
        return LIGHT_SHARP if is_sharp else LIGHT

    def _wants_dark(self) -> bool:
        match self._appearance:
            case Appearance.LIGHT:
                return False
            case Appearance.DARK:
                return True
            case Appearance.SYSTEM:
                return self._hints.colorScheme() is Qt.ColorScheme.Dark
