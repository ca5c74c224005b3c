"""Titles of chats that are cut to a width. Main thread."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QFontMetrics

from app.words import folders, window

_ENDINGS = (folders.COPIED, window.FORKED)


def elided_title(metrics: QFontMetrics, title: str, width: int) -> str:
    """Cut a title at its end, but keep the ending that tells a copy from its original."""
    ending = next((one for one in _ENDINGS if title.endswith(one)), "")
    room = width - metrics.horizontalAdvance(ending)
    if room <= 0:
        ending, room = "", width
    start = title.removesuffix(ending)
    return metrics.elidedText(start, Qt.TextElideMode.ElideRight, room) + ending
