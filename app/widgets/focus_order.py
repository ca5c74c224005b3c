"""The order in which the Tab key visits the widgets of a window. Main thread."""

from __future__ import annotations

from itertools import pairwise

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget


def set_tab_order(*parts: QWidget) -> None:
    """Make Tab visit `parts` in order, and the widgets inside a part in order of creation.

    Tab also visits the unchecked buttons of an exclusive group.
    """
    found = (widget for part in parts for widget in (part, *part.findChildren(QWidget)))
    stops = [one for one in found if one.focusPolicy() is not Qt.FocusPolicy.NoFocus]
    for before, after in pairwise(stops):
        QWidget.setTabOrder(before, after)
