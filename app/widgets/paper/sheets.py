"""The pages of a printer or a PDF file, in the pixels of the transcript. Main thread only."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from PySide6.QtCore import QLocale, QMarginsF, QRectF, Qt
from PySide6.QtGui import (
    QColor,
    QFontMetricsF,
    QPagedPaintDevice,
    QPageLayout,
    QPageSize,
    QPainter,
)

from app.theme.tokens import Space, Type
from app.widgets.transcript.rows.look import Look
from app.words import exchange as words
from engine.errors import UserFixableError

# Size of a pixel of the transcript in points: body text is printed in 10 points.
_POINTS = 10 / Type.BODY.size
_SIDE_MM, _TOP_MM = 20.0, 16.0  # margins of the page
_FOOT = Space.HUGE  # height of the page's foot, in pixels
# Smallest page that is used, in pixels. On smaller paper, for example labels, text is cut off.
_MIN_PAGE = 240


class PrinterError(UserFixableError):
    """The error for a printer that does not accept pages."""

    title = words.NOT_PRINTED
    advice = words.NOT_PRINTED_ADVICE


def page_layout() -> QPageLayout:
    """Return the page of this country, A4 or Letter."""
    is_metric = QLocale().measurementSystem() is QLocale.MeasurementSystem.MetricSystem
    size = QPageSize(QPageSize.PageSizeId.A4 if is_metric else QPageSize.PageSizeId.Letter)
    margins = QMarginsF(_SIDE_MM, _TOP_MM, _SIDE_MM, _TOP_MM)
    unit = QPageLayout.Unit.Millimeter
    return QPageLayout(size, QPageLayout.Orientation.Portrait, margins, unit)


class Sheets:
    """The pages of a device. Content is placed from top to bottom; `room` is left on this page."""

    def __init__(self, device: QPagedPaintDevice, title: str) -> None:
        self._device = device
        self._title = title
        self._scale_x = device.logicalDpiX() / 72 * _POINTS
        self._scale_y = device.logicalDpiY() / 72 * _POINTS
        self.width = max(_MIN_PAGE, int(device.width() / self._scale_x))
        self.height = max(_MIN_PAGE, int(device.height() / self._scale_y) - _FOOT)
        self.y = 0  # where the next content is placed
        self._number = 1
        self._num_sent = 0
        self._painter = QPainter()

    @property
    def room(self) -> int:
        return self.height - self.y

    def open(self, look: Look) -> None:
        """Begin the first page.

        Raises:
            PrinterError: the device does not accept pages.
        """
        if not self._painter.begin(self._device):
            raise PrinterError(words.NO_PRINTER)
        self._begin_page(look)

    def next_page(self, look: Look) -> None:
        self._number += 1
        self.y = 0
        self._begin_page(look)

    def close(self) -> None:
        """End the last page. The sheets can be closed at any time, and more than once."""
        if self._painter.isActive():
            self._painter.end()

    @contextmanager
    def placed(self, area: QRectF) -> Generator[QPainter | None]:
        """Give a painter for an area of the content, and place the area at `y`.

        The painter has the coordinates of the content. It is None on a page that is not printed.
        """
        if not self._is_wanted:
            yield None
        else:
            self._painter.save()
            self._painter.translate(0, self.y - area.top())
            self._painter.setClipRect(area)
            yield self._painter
            self._painter.restore()
        self.y += round(area.height())

    @property
    def _is_wanted(self) -> bool:
        """True if the user wants this page: the print dialog offers ranges of pages."""
        ranges = self._device.pageRanges()
        return ranges.isEmpty() or ranges.contains(self._number)

    def _begin_page(self, look: Look) -> None:
        if not self._is_wanted:
            return
        painter = self._painter
        if self._num_sent:
            self._device.newPage()
        self._num_sent += 1
        painter.resetTransform()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.scale(self._scale_x, self._scale_y)
        self._paint_foot(look)

    def _paint_foot(self, look: Look) -> None:
        """Paint the title of the conversation and the number of the page."""
        painter, font = self._painter, look.face(Type.CAPTION).font
        foot = QRectF(0, self.height, self.width, _FOOT)
        painter.setFont(font)
        painter.setPen(QColor(look.colors.tertiary))
        bottom = Qt.AlignmentFlag.AlignBottom
        painter.drawText(foot, bottom | Qt.AlignmentFlag.AlignRight, str(self._number))
        mode, room = Qt.TextElideMode.ElideRight, self.width - Space.HUGE
        title = QFontMetricsF(font).elidedText(self._title, mode, room)
        painter.drawText(foot, bottom | Qt.AlignmentFlag.AlignLeft, title)
