"""Compares the picture of a streamed answer with that of the complete answer. Main thread."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from time import monotonic

from PySide6.QtCore import Qt
from PySide6.QtGui import QImage
from PySide6.QtTest import QTest

from app.viewmodels.transcript import ItemStatus
from app.widgets.transcript.view import TranscriptView
from engine.types import Channel
from tests.fakes.transcript_samples import answer, question

SETTLE_S = 30.0  # time limit of settle() in seconds


class PictureError(Exception):
    """The pictures of the streamed answer differ from those of the whole answer."""

    def __init__(self, page: int, streamed: QImage, whole: QImage) -> None:
        super().__init__(f"page {page} looks otherwise")
        self.streamed = streamed
        self.whole = whole


def check_picture(view: TranscriptView, text: str, pieces: Iterable[str]) -> int:
    """Stream a text, then show it as a whole, and compare the pictures of all pages.

    The view is painted after every piece.

    Returns:
        The number of pages.

    Raises:
        PictureError: a page differs in at least one pixel.
    """
    whole = answer(0, text)
    view.show_conversation([question(0), replace(whole, text="", status=ItemStatus.STREAMING)])
    for piece in pieces:
        view.append_delta(whole.key, Channel.ANSWER, piece)
        view.flush()
        view.viewport().repaint()
    view.finish(whole)
    streamed = pages(view)
    view.show_conversation([question(0), whole])
    expected = pages(view)
    for page, pair in enumerate(zip(streamed, expected, strict=False)):
        if pair[0] != pair[1]:
            raise PictureError(page, *pair)
    if len(streamed) != len(expected):
        raise PictureError(min(len(streamed), len(expected)), streamed[-1], expected[-1])
    return len(expected)


def pages(view: TranscriptView) -> list[QImage]:
    """Scroll through the transcript and return a picture of each page."""
    bar = view.verticalScrollBar()
    view.setFocus()
    QTest.keyClick(view, Qt.Key.Key_Home)
    shown: list[QImage] = []
    while True:
        settle(view)
        shown.append(view.viewport().grab().toImage())
        if bar.value() >= bar.maximum():
            return shown
        bar.setValue(bar.value() + bar.pageStep())


def settle(view: TranscriptView) -> None:
    """Wait until the transcript is laid out, coloured and typeset.

    Raises:
        TimeoutError: the work took longer than SETTLE_S.
    """
    until = monotonic() + SETTLE_S
    view.viewport().repaint()  # only painted code is coloured
    while not view.statistics().is_idle:
        if monotonic() > until:
            raise TimeoutError(f"the transcript was not done after {SETTLE_S} s")
        QTest.qWait(1)
