"""Tooltips of painted parts, and the end of all tooltips at a key press. Main thread."""

from __future__ import annotations

import re
from html import escape

from PySide6.QtCore import QEvent, QPoint
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QToolTip, QWidget

from app.theme.tokens import Size

# Qt guesses if a tooltip is plain text or HTML. In these elements, escaped text is always detected
# as HTML and is shown unchanged. Qt breaks the lines of wrapped HTML at half the width that it has,
# except in a table of a given width.
_UNIT = re.compile(
    r"(?<=\d) (?=(?:ms|s|min|tokens?|tok/s|[KMG]B)\b)"
)  # space between number and unit
_NARROW = "<p style='white-space:pre'>{text}</p>"
_WIDE = "<table width={width}><tr><td style='white-space:pre-wrap'>{text}</td></tr></table>"


def show_tip(widget: QWidget, at: QPoint, text: str) -> None:
    """Show a tooltip at a point of the screen, or hide the one on show if the text is empty.

    A tooltip whose lines are wrapped is Size.TIP wide.
    """
    advance = QFontMetrics(widget.font()).horizontalAdvance
    widest = max(map(advance, text.splitlines()), default=0)
    text = _UNIT.sub("\N{NO-BREAK SPACE}", text)
    form = _NARROW if widest <= Size.TIP else _WIDE
    shown = form.format(text=escape(text), width=Size.TIP) if text else ""
    QToolTip.showText(at, shown, widget)


def is_tip_shown() -> bool:
    return QToolTip.isVisible()


def hide_tip() -> None:
    if QToolTip.isVisible():
        QToolTip.hideText()


def hide_tip_at_key(event: QEvent) -> None:
    """Hide a tooltip if the event is a key press. Qt does this on macOS only, and for few keys."""
    if event.type() is QEvent.Type.KeyPress:
        hide_tip()
