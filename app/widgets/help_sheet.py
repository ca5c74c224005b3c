"""A sheet of the Help menu: a page that scrolls with wheel and keys, and Done. Main thread."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QApplication, QDialog, QLabel, QScrollBar, QVBoxLayout, QWidget
from typing_extensions import override

from app.widgets.done_row import done_row
from app.widgets.scroller import VerticalScroller

_SCROLLING = (
    Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_PageUp, Qt.Key.Key_PageDown, Qt.Key.Key_Home,
    Qt.Key.Key_End,
)  # fmt: skip


class HelpSheet(QDialog):
    """The sheet. Its page is a child of it."""

    def __init__(self, name: str, title: str, parent: QWidget) -> None:
        super().__init__(parent)
        self._bar: QScrollBar | None = None
        self.setObjectName(name)
        self.setWindowTitle(title)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)

    def open_page(self, page: QWidget, size: QSize) -> None:
        """Show a page. The sheet is never narrower than its page."""
        scroller = VerticalScroller(self)
        scroller.setWidget(page)
        self._bar = scroller.verticalScrollBar()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(scroller)
        layout.addLayout(done_row(self))
        self.resize(size)
        self.open()
        # The style sheet has set the fonts now.
        scroller.setMinimumWidth(page.minimumSizeHint().width() + self._bar.sizeHint().width())

    @override
    def keyPressEvent(self, arg__1: QKeyEvent) -> None:
        if self._bar is not None and arg__1.key() in _SCROLLING:
            QApplication.sendEvent(self._bar, arg__1)
        else:
            super().keyPressEvent(arg__1)


def page_heading(text: str, parent: QWidget) -> QLabel:
    label = QLabel(text, parent)
    label.setProperty("type", "heading")
    return label
