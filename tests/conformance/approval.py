"""The pictures that were looked at and found right, and how like them another must be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PySide6.QtGui import QGuiApplication, QImage

from app.theme.palette import Theme
from tests.conformance.painting import argb, channels

APPROVED = Path(__file__).parent / "approved"
PAINTED_WITH = APPROVED / "painted_with.txt"

TILE = 12  # pixels; a bullet and a caret fill a good part of one
TOLERANCE = 10.0  # of 255, mean over a tile: smoothing may differ, what is there may not


def painted_with(theme: Theme) -> str:
    """Fonts, platform and scale: pictures made with others can't be compared."""
    scale = QGuiApplication.primaryScreen().devicePixelRatio()
    return f"{theme.fonts.text}, {theme.fonts.code}, {QGuiApplication.platformName()}, {scale:g}x"


def difference(picture: QImage, approved: QImage) -> str:
    """How a picture differs from the approved one; empty if it does not."""
    if picture.size() != approved.size():
        sizes = [f"{image.width()} x {image.height()}" for image in (picture, approved)]
        return f"it is {sizes[0]} pixels, not {sizes[1]}"
    off = np.abs(channels(argb(picture)) - channels(argb(approved))).max(axis=2)  # (H, W)
    height, width = (-length % TILE for length in off.shape)
    padded = np.pad(off, ((0, height), (0, width)))
    rows, columns = (length // TILE for length in padded.shape)
    tiles = padded.reshape(rows, TILE, columns, TILE).mean(axis=(1, 3))
    row, column = divmod(int(tiles.argmax()), columns)
    if tiles[row, column] <= TOLERANCE:
        return ""
    return f"it is {tiles[row, column]:.0f} of 255 off at x {column * TILE}, y {row * TILE}"
