"""The line above the composer while attached files are too long, with what helps. Main thread."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QInputDialog, QLabel, QWidget

from app.conversation.attachments import Attachment, parse_pages
from app.theme.tokens import Size
from app.widgets.button_row import Label
from app.widgets.choice_line import ChoiceLine
from app.widgets.menu_text import plain
from app.words import attachments as words, models


class LongFiles(ChoiceLine):
    """A sentence with buttons: the first part, chosen pages, another model. Hidden if files fit."""

    first_part_requested = Signal()
    # argument: tuple of ranges of page numbers, empty if not understood
    pages_requested = Signal(object)
    model_requested = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._paged_file: Attachment | None = None  # the file whose pages can be chosen
        self.set_choices(
            (words.FIRST_PART, self.first_part_requested),
            (words.CHOOSE_PAGES, self._ask_for_pages),
            ("", self.model_requested),
        )

    def show_offer(self, text: str, *, paged_file: Attachment | None, model_name: str) -> None:
        """Show the sentence and the buttons that help, or hide the line if the text is empty.

        paged_file: the file whose pages can be chosen; None: there is none.
        """
        self._paged_file = paged_file
        use = models.use_model(model_name) if model_name else ""
        self.show_choices(
            text,
            Label(words.FIRST_PART),
            Label(words.CHOOSE_PAGES if paged_file else ""),
            Label(use, model_name),
        )

    def _ask_for_pages(self) -> None:
        file = self._paged_file
        if file is None or file.num_pages is None:
            return
        dialog = QInputDialog(self)
        dialog.setWindowTitle(words.CHOOSE_PAGES.rstrip("…"))
        dialog.setMinimumWidth(Size.SHEET_WIDTH)  # the title is whole
        middle, room = Qt.TextElideMode.ElideMiddle, Size.SHEET_WIDTH // 2
        name = dialog.fontMetrics().elidedText(file.name, middle, room)
        dialog.setLabelText(words.pages_label(plain(name), file.num_pages))
        for label in dialog.findChildren(QLabel):
            label.setTextFormat(Qt.TextFormat.PlainText)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.textValueSelected.connect(self._on_typed)
        dialog.open()

    def _on_typed(self, text: str) -> None:
        self.pages_requested.emit(parse_pages(text))
