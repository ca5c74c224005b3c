"""Generated pictures: files to attach, and stored pictures of a data folder. No file in the repository."""

from __future__ import annotations

import hashlib

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QImage, QLinearGradient, QPainter

from app.conversation.attachments import PICTURE, AttachedPicture, Attachment
from app.settings import PictureSize
from app.store.pictures import PictureFiles
from engine.types import Picture, picture_digest


def scene(width: int, height: int, hue: int = 30) -> QImage:
    """Paint a landscape: a sky, a sun and hills."""
    image = QImage(width, height, QImage.Format.Format_RGB888)
    painter = QPainter(image)
    sky = QLinearGradient(0, 0, 0, height)
    sky.setColorAt(0, QColor.fromHsv((hue + 180) % 360, 110, 235))
    sky.setColorAt(1, QColor.fromHsv(hue % 360, 70, 250))
    painter.fillRect(image.rect(), sky)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    side = min(width, height) / 4
    painter.setBrush(QColor.fromHsv(45, 120, 255))
    painter.drawEllipse(QRectF(width * 0.62, height * 0.18, side, side))
    for number, value in enumerate((150, 110, 75)):
        painter.setBrush(QColor.fromHsv((hue + 90) % 360, 120, value))
        middle = QPointF(width * (0.2 + 0.3 * number), height * (1.05 + 0.12 * number))
        painter.drawEllipse(middle, width * 0.5, height * 0.45)
    painter.end()
    return image


def png(image: QImage) -> bytes:
    data, buffer = QByteArray(), QBuffer()
    buffer.setBuffer(data)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    image.save(buffer, "PNG")  # pyright: ignore[reportCallIssue, reportArgumentType] - the stubs lack it
    return bytes(data.data())


def picture_of(image: QImage) -> Picture:
    """Return the engine's value of an image."""
    rgb = image.convertToFormat(QImage.Format.Format_RGB888)
    rows = (bytes(memoryview(rgb.constScanLine(y))[: 3 * rgb.width()]) for y in range(rgb.height()))  # pyright: ignore[reportArgumentType] - a memoryview
    digest = picture_digest(rgb.width(), rgb.height(), b"".join(rows))
    return Picture(digest=digest, width=rgb.width(), height=rgb.height())


def stored_picture(
    files: PictureFiles,
    name: str = "hills.png",
    *,
    width: int = 800,
    height: int = 600,
    hue: int = 30,
) -> Attachment:
    """Write the files of a picture into the data folder, and return its attachment."""
    image = scene(width, height, hue)
    original, view = png(image), picture_of(image)
    picture = AttachedPicture(
        original=hashlib.sha256(original).hexdigest(),
        extension="png",
        width=width,
        height=height,
        size=PictureSize.MEDIUM,
        view=view,
    )
    files.folder.mkdir(parents=True, exist_ok=True)
    files.original(picture).write_bytes(original)
    files.view(view).write_bytes(original)
    small = image.scaled(
        640,
        640,
        Qt.AspectRatioMode.KeepAspectRatio,
        Qt.TransformationMode.SmoothTransformation,
    )
    thumbnail = small if max(width, height) > 640 else image
    files.thumbnail(picture).write_bytes(png(thumbnail))
    return Attachment(name=name, kind=PICTURE, text="", digest=view.digest, picture=picture)
