"""Paints a scene as a picture that is small enough for the repository. Main thread only."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QRect
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication

from app.theme.palette import Theme
from app.widgets.transcript.view import TranscriptView
from tests.conformance.scenes import Scene
from tests.conformance.streamed_view import settle

HEIGHT = 900  # height of the view in pixels, more than any scene needs
# Number of colours in a picture: its most frequent ones. Qt's own reduction would lose the light
# greys.
NUM_COLORS = 256
MARGIN = 12  # number of empty rows kept below the last painted row


def paint(theme: Theme, scene: Scene) -> QImage:
    """Return a picture of the scene with NUM_COLORS colours, without empty space at the bottom."""
    theme.set_appearance(scene.appearance)
    theme.set_sharp(scene.is_sharp)
    view = TranscriptView(theme, clock=lambda: 0.0)
    view.resize(scene.width, HEIGHT)
    view.set_zoom(scene.zoom)
    view.show()
    view.show_conversation(scene.items)
    settle(view)
    scene.play(view)
    settle(view)
    flash_ms = QApplication.cursorFlashTime()
    QApplication.setCursorFlashTime(0)  # no blinking: the caret of an editor is always painted
    picture = view.grab().toImage()
    QApplication.setCursorFlashTime(flash_ms)
    view.hide()
    view.deleteLater()
    return _few_colors(picture.copy(_used(picture)))


def _few_colors(picture: QImage) -> QImage:
    """Reduce a picture to its most frequent colours. Rare colours are shades of smoothed glyphs."""
    colors, inverse, counts = np.unique(argb(picture), return_inverse=True, return_counts=True)
    chosen = colors[np.argsort(-counts, kind="stable")[:NUM_COLORS]]
    nearest = np.abs(channels(colors)[:, None] - channels(chosen)[None]).sum(axis=2).argmin(axis=1)
    indices = nearest[inverse].reshape(picture.height(), picture.width()).astype(np.uint8)
    size = (picture.width(), picture.height(), picture.width())
    small = QImage(indices.tobytes(), *size, QImage.Format.Format_Indexed8)
    small.setColorTable([int(color) for color in chosen])
    # Copy, because `small` uses the memory of the array, which is freed on return.
    return small.copy()


def argb(picture: QImage) -> npt.NDArray[np.uint32]:
    """Return the pixels as opaque ARGB numbers, in an array of shape (height, width)."""
    image = picture.convertToFormat(QImage.Format.Format_RGB32)
    pixels = np.frombuffer(image.constBits(), np.uint32) | np.uint32(0xFF000000)
    return pixels.reshape(image.height(), image.width())


def channels(colors: npt.NDArray[np.uint32]) -> npt.NDArray[np.int32]:
    """Split each colour into red, green and blue (0 to 255), along a new last axis."""
    shifts = np.array([16, 8, 0], np.uint32)
    return ((colors[..., None] >> shifts) & 0xFF).astype(np.int32)


def _used(picture: QImage) -> QRect:
    """Return the area from the top to MARGIN pixels below the last row with any contents."""
    background = picture.pixel(0, picture.height() - 1)
    row = picture.copy(0, 0, picture.width(), 1)
    row.fill(background)
    last = picture.height() - 1
    while last > 0 and picture.copy(0, last, picture.width(), 1) == row:
        last -= 1
    return QRect(0, 0, picture.width(), min(picture.height(), last + 1 + MARGIN))
