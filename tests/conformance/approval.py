"""Compares a picture of a scene with the approved picture of the scene.

An approved picture was looked at by a developer, who found no mistake in it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PySide6.QtGui import QGuiApplication, QImage

from app.theme.palette import Theme
from tests.conformance.painting import argb, channels

APPROVED = Path(__file__).parent / "approved"
PAINTED_WITH = APPROVED / "painted_with.txt"

# Side of a tile in pixels. Pictures are compared in square tiles, which are so small that a missing
# bullet changes a tile clearly.
TILE = 12
# Largest allowed mean difference of a tile, on the scale 0 to 255. Other smoothing of text stays
# below this value; a missing shape is above it.
TOLERANCE = 10.0


def painted_with(theme: Theme) -> str:
    """Return the fonts, platform and scale. Two pictures are comparable only if these are equal."""
    scale = QGuiApplication.primaryScreen().devicePixelRatio()
    return f"{theme.fonts.text}, {theme.fonts.code}, {QGuiApplication.platformName()}, {scale:g}x"


def difference(picture: QImage, approved: QImage) -> str:
    """Describe the difference between the pictures. Return an empty string if they look equal."""
    if picture.size() != approved.size():
        sizes = [f"{image.width()} x {image.height()}" for image in (picture, approved)]
        return f"it is {sizes[0]} pixels, not {sizes[1]}"
    # An array of shape (height, width).
    off = np.abs(channels(argb(picture)) - channels(argb(approved))).max(axis=2)
    height, width = (-length % TILE for length in off.shape)
    padded = np.pad(off, ((0, height), (0, width)))
    rows, columns = (length // TILE for length in padded.shape)
    tiles = padded.reshape(rows, TILE, columns, TILE).mean(axis=(1, 3))
    row, column = divmod(int(tiles.argmax()), columns)
    if tiles[row, column] <= TOLERANCE:
        return ""
    return f"it is {tiles[row, column]:.0f} of 255 off at x {column * TILE}, y {row * TILE}"
