"""A frameless view that scrolls its content up and down, with a scroll bar that hides.

Qt styles a widget again, with all in it, when its parent changes. So make the view first, then its
content as a child of `viewport()`, and pass it to `setWidget` last.
"""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QFrame, QScrollArea, QWidget

from app.widgets.hiding_bar import HidingBar


class VerticalScroller(QScrollArea):
    """A view of a widget, which is as wide as the view. The view itself takes no focus."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.bar = HidingBar(self)
        self.setVerticalScrollBar(self.bar)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        app = QApplication.instance()
        if isinstance(app, QApplication):
            app.focusChanged.connect(self._reveal)

    def _reveal(self, _before: QWidget | None, now: QWidget | None) -> None:
        """Scroll to a widget that got the focus out of view.

        Qt does this only if Tab moves the focus from another widget of the content.
        """
        content = self.widget()
        if now is None or content is None or not content.isAncestorOf(now):
            return
        if now.visibleRegion().isEmpty():
            self.ensureWidgetVisible(now)
