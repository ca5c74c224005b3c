"""The app's icons: SVG files on an 18 px grid, tinted with a token colour. Main thread.

The files are in resources/icons. Their colour is currentColor, which is replaced by the tint.
"""

from __future__ import annotations

from enum import StrEnum
from functools import cache, lru_cache
from importlib.resources import files

from PySide6.QtCore import QByteArray, QRectF, Qt
from PySide6.QtGui import QColor, QIcon, QImage, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

GRID = 18  # default width and height of an icon in logical pixels
_APP_SIZES = (16, 32, 64, 128, 256)  # widths of the app icon's pixmaps in pixels
_SCALES = (1, 2, 3)  # device pixel ratios for which a QIcon has a pixmap
_IMAGES_KEPT = 500  # a page of the settings has 68 buttons with the same icon


class Icon(StrEnum):
    """The icons of the app. A value is a file name without .svg."""

    SIDEBAR = "sidebar"
    NEW_CHAT = "new-chat"
    CHEVRON_LEFT = "chevron-left"
    CHEVRON_RIGHT = "chevron-right"
    CHEVRON_DOWN = "chevron-down"
    CHEVRON_UP = "chevron-up"
    CHEVRON_RIGHT_SMALL = "chevron-right-small"
    CHEVRON_DOWN_SMALL = "chevron-down-small"
    COPY = "copy"
    CHECK = "check"
    REGENERATE = "regenerate"
    EDIT = "edit"
    FORK = "fork"
    STOP = "stop"
    SEND = "send"
    MORE = "more"
    INFO = "info"
    CLOSE = "close"
    FOLDER = "folder"
    DOWNLOAD = "download"
    TRASH = "trash"
    CONTINUE = "continue"
    WARNING = "warning"
    MODEL = "model"
    PIN = "pin"
    APPEARANCE = "appearance"
    CHAT = "chat"
    WRAP = "wrap"
    STORAGE = "storage"
    ARCHIVE = "archive"
    BOLT = "bolt"
    FILTER = "filter"
    ATTACH = "attach"
    FILE = "file"
    PICTURE = "picture"
    MACS = "macs"
    GENERAL = "general"
    KEYBOARD = "keyboard"
    ADVANCED = "advanced"
    SERVER = "server"
    COLUMNS = "columns"


def app_icon() -> QIcon:
    """Return the icon for the app's windows. macOS shows the icon of the bundle instead."""
    renderer = QSvgRenderer(QByteArray((files("resources") / "app-icon.svg").read_bytes()))
    made = QIcon()
    for size in _APP_SIZES:
        pixmap = QPixmap(size, size)
        pixmap.fill(Qt.GlobalColor.transparent)
        painter = QPainter(pixmap)
        renderer.render(painter, QRectF(pixmap.rect()))
        painter.end()
        made.addPixmap(pixmap)
    return made


class Icons:
    """A loader of tinted icons. It reads each icon file only once per colour."""

    def __init__(self) -> None:
        self._renderers: dict[tuple[Icon, str], QSvgRenderer] = {}

    def paint(self, painter: QPainter, icon: Icon, color: str, rect: QRectF) -> None:
        """Paint an icon into rect at the resolution of the painter."""
        self._renderer(icon, color).render(painter, rect)

    def pixmap(self, icon: Icon, color: str, *, size: int = GRID, scale: float = 1.0) -> QPixmap:
        """Return a pixmap of an icon: `size` logical pixels at the device pixel ratio `scale`."""
        pixmap = QPixmap.fromImage(_image(icon, color, round(size * scale)))
        pixmap.setDevicePixelRatio(scale)
        return pixmap

    def icon(
        self, icon: Icon, color: str, *, disabled: str | None = None, size: int = GRID
    ) -> QIcon:
        """Return an icon as a QIcon that is sharp on screens of every scale.

        The tint is fixed. Call this method again when the theme changes.
        """
        made = QIcon()
        for scale in _SCALES:
            made.addPixmap(self.pixmap(icon, color, size=size, scale=scale))
            if disabled is not None:
                pixmap = self.pixmap(icon, disabled, size=size, scale=scale)
                made.addPixmap(pixmap, QIcon.Mode.Disabled)
        return made

    def _renderer(self, icon: Icon, color: str) -> QSvgRenderer:
        renderer = self._renderers.get((icon, color))
        if renderer is None:
            self._renderers[icon, color] = renderer = _make_renderer(icon, color)
        return renderer


def _make_renderer(icon: Icon, color: str) -> QSvgRenderer:
    tinted = _source(icon).replace("currentColor", QColor(color).name())
    return QSvgRenderer(QByteArray(tinted.encode()))


@lru_cache(_IMAGES_KEPT)
def _image(icon: Icon, color: str, pixels: int) -> QImage:
    """Return an image of an icon: `pixels` wide and high."""
    image = QImage(pixels, pixels, QImage.Format.Format_ARGB32_Premultiplied)
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    _make_renderer(icon, color).render(painter, QRectF(image.rect()))
    painter.end()
    return image


@cache
def _source(icon: Icon) -> str:
    """Return the text of an icon's file, in which the colour is `currentColor`."""
    return (files("resources") / "icons" / f"{icon}.svg").read_text("utf-8")
