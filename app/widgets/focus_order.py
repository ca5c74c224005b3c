"""The order in which Tab leads through the window. Main thread."""

from __future__ import annotations

from itertools import pairwise

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget


def set_tab_order(*parts: QWidget) -> None:
    """One part after the other; in a part, its widgets as they were made."""
    found = (widget for part in parts for widget in part.findChildren(QWidget))
    stops = [one for one in found if one.focusPolicy() & Qt.FocusPolicy.TabFocus]
    for before, after in pairwise(stops):
        QWidget.setTabOrder(before, after)
