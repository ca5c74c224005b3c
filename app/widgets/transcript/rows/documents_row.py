"""The row that stands for the documents of a folder in a user's message. Main thread only."""

from __future__ import annotations

from PySide6.QtCore import Qt

from app.theme.icons import Icon
from app.theme.tokens import Space, Type
from app.widgets.transcript.rows.icon_link import IconLink, IconLinkRow
from app.widgets.transcript.rows.look import Look
from app.widgets.transcript.rows.row import RowAction, Target
from app.words import folder_documents as words


class DocumentsRow(IconLinkRow):
    """An arrow and a link that shows or hides the rows of the documents."""

    def __init__(self, look: Look, count: int, folder: str, *, is_open: bool) -> None:
        label = words.of_folder(count, folder)
        link = IconLink(
            target=Target(RowAction.TOGGLE_DOCUMENTS),
            label=label,
            name=words.spoken_row(label, is_open=is_open),
            icon=Icon.CHEVRON_DOWN_SMALL if is_open else Icon.CHEVRON_RIGHT_SMALL,
            icon_size=16,
            gap=Space.S,
            style=Type.UI,
            elide=Qt.TextElideMode.ElideRight,
        )
        super().__init__(look, link, look.colors.text)
        self.natural_width = self._left + self._label_width + 2
