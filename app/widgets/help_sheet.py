"""A sheet of the Help menu: a page that scrolls with the wheel and the keys, and Done. Main thread."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QDialog, QVBoxLayout, QWidget

from app.widgets.done_row import done_row
from app.widgets.scroller import VerticalScroller


class HelpSheet(QDialog):
    """The sheet. Its page is a child of it."""

    def __init__(self, name: str, title: str, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.setWindowTitle(title)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)

    def open_page(self, page: QWidget, size: QSize) -> None:
        """Show a page. The sheet is never narrower than its page."""
        scroller = VerticalScroller(page, self)
        scroller.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(scroller)
        layout.addLayout(done_row(self))
        self.resize(size)
        scroller.setFocus()
        self.open()
        # The style sheet has set the fonts now.
        bar = scroller.verticalScrollBar().sizeHint().width()
        scroller.setMinimumWidth(page.minimumSizeHint().width() + bar)
