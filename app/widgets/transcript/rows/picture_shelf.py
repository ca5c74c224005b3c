"""Thumbnails of pictures, read from their files on a worker thread and kept in a bounded cache.

Only the app's own PNG files are read here: the extraction process has decoded the user's files. All
methods are used on the main thread only.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QObject, QRect, QSize, Qt, Signal
from PySide6.QtGui import QBrush, QImage, QImageReader, QImageWriter, QPainter

from app.bridge.tasks import TaskLane
from app.conversation.attachments import PICTURE_AREAS, AttachedPicture
from app.settings import PictureSize
from app.store.pictures import PictureFiles
from app.words import problems
from engine.errors import DiskError
from engine.problem import Problem
from engine.types import Picture
from engine.whole_file import write_whole

MAX_BYTES = 48 << 20  # bytes of the cached images: 200 of the largest in the transcript
_MAX_THUMBNAIL = 640 * 640  # pixels
_MAX_PIXELS = PICTURE_AREAS[PictureSize.FULL]


@dataclass(frozen=True, slots=True)
class WantedImage:
    """A picture in the size in which it is painted. Lengths are in pixels of the screen."""

    picture: AttachedPicture
    width: int
    height: int
    radius: int  # of the rounded corners


class PictureShelf(QObject):
    """The cache of thumbnails, and the queue of those to read."""

    # arguments: AttachedPicture, its QImage; None: its file is missing or damaged
    whole_read = Signal(object, object)
    arrived = Signal()  # a thumbnail was read, or its file cannot be read

    def __init__(self, files: PictureFiles, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._files = files
        self._lane = TaskLane("pictures", self)
        # The cache, least recently used first. None: the file cannot be read.
        self._read: OrderedDict[WantedImage, QImage | None] = OrderedDict()
        self._num_bytes = 0  # of the images in the cache
        self._reading: set[WantedImage] = set()

    def find(self, wanted: WantedImage) -> QImage | None:
        """Return an image from the cache. If it is not there, read it, and emit `arrived` then."""
        if wanted in self._read:
            self._read.move_to_end(wanted)
            return self._read[wanted]
        if wanted not in self._reading:
            self._reading.add(wanted)
            path = self._files.thumbnail(wanted.picture)
            self._lane.run(partial(read_image, path, wanted), partial(self._on_read, wanted))
        return None

    def read_whole(self, picture: AttachedPicture, view: Picture) -> None:
        """Read a view of a picture, and emit `whole_read` with the picture then."""
        read = partial(read_png, self._files.view(view), _MAX_PIXELS)
        self._lane.run(read, partial(self.whole_read.emit, picture))

    def save_original(
        self, picture: AttachedPicture, path: Path, on_error: Callable[[Problem], None]
    ) -> None:
        """Save the user's file, without its metadata, under another path."""
        self._lane.run(partial(_copy_original, self._files, picture, path), None, on_error)

    def is_missing(self, wanted: WantedImage) -> bool:
        """Return True if the file of an image cannot be read."""
        return wanted in self._read and self._read[wanted] is None

    @property
    def is_idle(self) -> bool:
        return not self._reading

    def close(self) -> None:
        """End the worker thread."""
        self._lane.stop()

    def _on_read(self, wanted: WantedImage, image: QImage | None) -> None:
        self._reading.discard(wanted)
        self._read[wanted] = image
        self._num_bytes += _size(image)
        while self._num_bytes > MAX_BYTES and len(self._read) > 1:
            _oldest, dropped = self._read.popitem(last=False)
            self._num_bytes -= _size(dropped)
        self.arrived.emit()


def read_image(path: Path, wanted: WantedImage) -> QImage | None:
    """Read an image, cut it to the wanted shape and round its corners. Any thread.

    Return None if the file is missing or damaged.
    """
    whole = read_png(path, _MAX_THUMBNAIL)
    if whole is None:
        return None
    size = QSize(wanted.width, wanted.height)
    filled = whole.scaled(
        size,
        Qt.AspectRatioMode.KeepAspectRatioByExpanding,
        Qt.TransformationMode.SmoothTransformation,
    )
    spare = filled.size() - size
    part = filled.copy(QRect(spare.width() // 2, spare.height() // 2, size.width(), size.height()))
    rounded = QImage(size, QImage.Format.Format_ARGB32_Premultiplied)
    rounded.fill(Qt.GlobalColor.transparent)
    painter = QPainter(rounded)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(QBrush(part))
    painter.drawRoundedRect(rounded.rect(), wanted.radius, wanted.radius)
    painter.end()
    return rounded


def read_png(path: Path, max_pixels: int) -> QImage | None:
    """Read a PNG file of the app. Return None if it is missing, damaged or larger. Any thread."""
    reader = QImageReader(str(path), b"png")
    reader.setDecideFormatFromContent(False)
    size = reader.size()
    if not size.isValid() or size.width() * size.height() > max_pixels:
        return None
    image = reader.read()
    return None if image.isNull() else image


def _copy_original(files: PictureFiles, picture: AttachedPicture, path: Path) -> None:
    try:
        write_whole(path, files.original(picture).read_bytes())
    except OSError as error:
        raise DiskError(problems.cannot_write(path, error.strerror)) from error


def _size(image: QImage | None) -> int:
    return 0 if image is None else image.sizeInBytes()


def png_of(image: QImage) -> bytes:
    """Return an image as a PNG file. Any thread."""
    data = QByteArray()
    buffer = QBuffer(data)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    writer = QImageWriter(buffer, QByteArray(b"png"))
    writer.write(image)
    return bytes(data.data())
