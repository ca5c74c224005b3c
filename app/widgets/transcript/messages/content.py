"""The protocol between a message's layout and its content, and the rows that pass between them.

A content turns one TranscriptItem into rows and says what the rows are: which of them have text, which
lie in a bubble. UserContent and AnswerContent implement the protocol. MessageLayout has one content,
asks it for rows when they are out of date, and does everything that needs coordinates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from app.viewmodels.transcript import TranscriptItem
from app.widgets.transcript.messages.body import MarkdownRows
from app.widgets.transcript.messages.bubble import Bubble
from app.widgets.transcript.messages.places import TextSections
from app.widgets.transcript.rows.row import RowAction, TranscriptRow


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageShape:
    """Facts about the rows of a message, by their index."""

    text: TextSections = TextSections()  # noqa: RUF009 - frozen
    bubble: Bubble | None = None  # None: the rows lie on the canvas
    caret_row: int | None = None  # the row with the caret at the end of its text
    is_folded: bool = False  # a part of the text has no rows until the message is unfolded
    is_cut_by_width: bool = False  # another width may fold the text at another row


@dataclass(frozen=True, slots=True)
class MessageRows:
    """The rows of a message from index first on; the rows before it are unchanged."""

    first: int
    rows: list[TranscriptRow]
    shape: MessageShape


class MessageContent(Protocol):
    """The rows of one message, and the text behind them."""

    item: TranscriptItem
    is_changed: bool  # the rows made last are out of date

    @property
    def text(self) -> str:
        """The text that the copy button copies."""
        ...

    @property
    def markdown(self) -> Sequence[MarkdownRows]:
        """Texts whose rows are shown, in the order in which they are parsed."""
        ...

    def plain_text(self) -> str | None:
        """Return the text as it is read, or None if it is known only from the rows."""
        ...

    def source_text(self, ordinal: int) -> str:
        """Return the text that the source of the row with an ordinal is a range of."""
        ...

    def update(self, item: TranscriptItem) -> None:
        """Show other values of the same message."""
        ...

    def toggle(self, action: RowAction) -> None:
        """Fold or unfold the part of the message that an action names."""
        ...

    def make_rows(self, shown: Sequence[TranscriptRow], width: int) -> MessageRows:
        """Return the rows for a column of some width; shown are the rows returned before."""
        ...

    def release(self) -> bool:
        """Drop the parsed text; return False if it can't be made again from the item."""
        ...
