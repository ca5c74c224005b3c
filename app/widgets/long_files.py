"""The line above the composer while attached files are too long, with what helps. Main thread."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QInputDialog, QVBoxLayout, QWidget

from app.conversation.attachments import parse_pages
from app.theme.tokens import Space
from app.widgets.announcer import announce
from app.widgets.button import Button
from app.widgets.line_height import Sentences
from app.words import attachments as words


class LongFiles(QFrame):
    """A sentence with buttons: the first part, chosen pages, another model. Hidden if files fit."""

    first_part_requested = Signal()
    pages_requested = Signal(
        object
    )  # argument: tuple of ranges of page numbers, empty if not understood
    model_requested = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("offer")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.sentence = Sentences(self)
        self.first_button = Button(words.FIRST_PART, self)
        self.pages_button = Button(words.CHOOSE_PAGES, self)
        self.model_button = Button("", self)
        self.first_button.clicked.connect(self.first_part_requested)
        self.pages_button.clicked.connect(self._ask_for_pages)
        self.model_button.clicked.connect(self.model_requested)
        buttons = QHBoxLayout()
        buttons.setSpacing(Space.S)
        for button in (self.first_button, self.pages_button, self.model_button):
            buttons.addWidget(button)
        buttons.addStretch(1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(Space.L, Space.S, Space.L, Space.M)
        layout.setSpacing(Space.S)
        layout.addWidget(self.sentence)
        layout.addLayout(buttons)
        self.hide()

    def show_offer(self, text: str, *, has_pages: bool, model_name: str) -> None:
        """Show the sentence and the buttons that help, or hide the line if the text is empty."""
        self.pages_button.setVisible(has_pages)
        self.model_button.setText(words.use_model(model_name))
        self.model_button.setVisible(bool(model_name))
        if text == self.sentence.text() and self.isHidden() != bool(text):
            return
        self.sentence.setText(text)
        self.setAccessibleName(text)
        self.setVisible(bool(text))
        if text:
            announce(self, text)

    def _ask_for_pages(self) -> None:
        dialog = QInputDialog(self)
        dialog.setWindowTitle(words.CHOOSE_PAGES.rstrip("…"))
        dialog.setLabelText(words.PAGES_LABEL)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.textValueSelected.connect(self._on_typed)
        dialog.open()

    def _on_typed(self, text: str) -> None:
        self.pages_requested.emit(parse_pages(text))
