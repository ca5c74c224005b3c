"""The row below an answer that names a document with words of the answer. Main thread only."""

from __future__ import annotations

from PySide6.QtCore import Qt

from app.conversation.quotes import QuotedFile
from app.theme.icons import Icon
from app.theme.tokens import Space, Type
from app.widgets.transcript.rows.icon_link import IconLink, IconLinkRow
from app.widgets.transcript.rows.look import Look
from app.widgets.transcript.rows.row import RowAction, Target
from app.words import attachments as words


class QuoteRow(IconLinkRow):
    """An icon and a link that opens the document at the first passage."""

    def __init__(self, look: Look, place: int, file: QuotedFile) -> None:
        link = IconLink(
            target=Target(RowAction.OPEN_QUOTE, str(place)),
            label=words.quotes(file.name, file.num_passages),
            name=words.quotes_spoken(file.name, file.num_passages),
            tip=f"{file.name}\n{words.QUOTE_TIP}",
            icon=Icon.FILE,
            icon_size=14,
            gap=Space.XS,
            style=Type.SMALL,
            elide=Qt.TextElideMode.ElideMiddle,
        )
        super().__init__(look, link, look.colors.secondary)
