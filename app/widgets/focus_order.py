"""The order in which the Tab key visits the widgets of a window. Main thread."""

from __future__ import annotations

from itertools import pairwise

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractButton, QWidget


def set_tab_order(*parts: QWidget) -> None:
    """Make Tab visit `parts` in order, and the widgets inside a part in order of creation.

    The buttons of a group have their places too, because Tab reaches the one that is checked then.
    """
    found = (widget for part in parts for widget in (part, *part.findChildren(QWidget)))
    stops = [one for one in found if _is_stop(one)]
    for before, after in pairwise(stops):
        QWidget.setTabOrder(before, after)


def _is_stop(widget: QWidget) -> bool:
    proxy = widget.focusProxy()
    if proxy is not None and widget.isAncestorOf(proxy):
        return True  # Tab passes the focus on to a part of the widget
    # an unchecked button of a group, which Tab does not reach now
    may_be_checked = isinstance(widget, QAbstractButton) and widget.isCheckable()
    return may_be_checked or widget.focusPolicy() is not Qt.FocusPolicy.NoFocus
