"""Renders the app's SVG icon to AppIcon.icns, with one PNG for each size that macOS uses."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, Qt
from PySide6.QtGui import QImage, QImageWriter, QPainter
from PySide6.QtSvg import QSvgRenderer

# The images in AppIcon.icns. Key: Apple's image type. Value: width in pixels.
SIZES: Final = {
    "ic11": 32,
    "ic12": 64,
    "ic07": 128,
    "ic13": 256,
    "ic08": 256,
    "ic14": 512,
    "ic09": 512,
    "ic10": 1024,
}
_HEADER: Final = 8  # size in bytes of the header before the file and before each image


def write_icns(svg: Path, target: Path) -> None:
    renderer = QSvgRenderer(str(svg))
    if not renderer.isValid():
        raise ValueError(f"{svg} is no picture")
    pngs = {size: _png(renderer, size) for size in set(SIZES.values())}
    images = b"".join(_block(name, pngs[size]) for name, size in SIZES.items())
    target.write_bytes(_block("icns", images))


def _block(name: str, content: bytes) -> bytes:
    return name.encode("ascii") + (_HEADER + len(content)).to_bytes(4, "big") + content


def _png(renderer: QSvgRenderer, size: int) -> bytes:
    image = QImage(size, size, QImage.Format.Format_ARGB32_Premultiplied)
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    renderer.render(painter)
    painter.end()
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    QImageWriter(buffer, QByteArray(b"png")).write(image)
    return bytes(buffer.data().data())
