"""The order in which Tab leads through the window. Main thread."""

from __future__ import annotations

from itertools import pairwise

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget


def set_tab_order(*parts: QWidget) -> None:
    """One part after the other; in a part, its widgets as they were made.

    Of buttons that exclude each other, those that are not down have their place as well.
    """
    found = (widget for part in parts for widget in (part, *part.findChildren(QWidget)))
    stops = [one for one in found if one.focusPolicy() is not Qt.FocusPolicy.NoFocus]
    for before, after in pairwise(stops):
        QWidget.setTabOrder(before, after)
