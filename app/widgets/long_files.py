"""The line above the composer while attached files are too long, with what helps. Main thread."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QInputDialog, QWidget

from app.conversation.attachments import parse_pages
from app.widgets.button_row import Label
from app.widgets.choice_line import ChoiceLine
from app.words import attachments as words, models


class LongFiles(ChoiceLine):
    """A sentence with buttons: the first part, chosen pages, another model. Hidden if files fit."""

    first_part_requested = Signal()
    # argument: tuple of ranges of page numbers, empty if not understood
    pages_requested = Signal(object)
    model_requested = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, words.FIRST_PART, words.CHOOSE_PAGES, "")
        part, pages, model = self.buttons
        part.clicked.connect(self.first_part_requested)
        pages.clicked.connect(self._ask_for_pages)
        model.clicked.connect(self.model_requested)

    def show_offer(self, text: str, *, has_pages: bool, model_name: str) -> None:
        """Show the sentence and the buttons that help, or hide the line if the text is empty."""
        use = models.use_model(model_name) if model_name else ""
        self.show_choices(
            text,
            Label(words.FIRST_PART),
            Label(words.CHOOSE_PAGES if has_pages else ""),
            Label(use, model_name),
        )

    def _ask_for_pages(self) -> None:
        dialog = QInputDialog(self)
        dialog.setWindowTitle(words.CHOOSE_PAGES.rstrip("…"))
        dialog.setLabelText(words.PAGES_LABEL)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.textValueSelected.connect(self._on_typed)
        dialog.open()

    def _on_typed(self, text: str) -> None:
        self.pages_requested.emit(parse_pages(text))
