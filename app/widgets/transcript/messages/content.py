"""The protocol that message contents implement, and the types that it uses. Main thread only.

UserContent (user.py) and AnswerContent (answer.py) implement MessageContent. A content makes the
rows of one TranscriptItem, without positions. Each content belongs to one MessageLayout
(message.py). The layout calls make_rows() if is_changed is True, and parses the texts in `markdown`
slice by slice. make_rows() also returns a MessageShape, which tells the layout which rows have text
and which rows are inside a bubble.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from PySide6.QtCore import QSize

from app.viewmodels.transcript import TranscriptItem
from app.widgets.transcript.messages.body import MarkdownRows
from app.widgets.transcript.messages.bubble import Bubble
from app.widgets.transcript.messages.places import TextSections
from app.widgets.transcript.rows.row import RowAction, TranscriptRow


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageShape:
    """Tells which rows of a message have text, a bubble or a caret. Rows are given by index."""

    text: TextSections = TextSections()  # noqa: RUF009 - frozen
    bubble: Bubble | None = None  # None if no bubble is painted behind the rows
    # Index of the row that shows the caret after its text; None without a caret.
    caret_row: int | None = None
    is_folded: bool = False  # True if a part of the text is hidden and has no rows
    is_cut_by_width: bool = False  # True if the column width determines how much text is hidden


@dataclass(frozen=True, slots=True)
class MessageRows:
    """The rows of a message from index `first` to the end. Rows before `first` are unchanged."""

    first: int
    rows: list[TranscriptRow]
    shape: MessageShape


class MessageContent(Protocol):
    """The text of one message, and the rows made from it."""

    item: TranscriptItem
    # True if the rows are out of date. Each method that changes the content sets the field, and so
    # does the layout if a new width changes the rows. make_rows() resets the field to False.
    is_changed: bool

    @property
    def text(self) -> str:
        """The text that the copy button copies."""
        ...

    @property
    def editor_size(self) -> QSize:
        """Size of the space that is reserved for the editor while the user edits the message."""
        ...

    @editor_size.setter
    def editor_size(self, size: QSize) -> None: ...

    def text_width(self, width: int) -> int:
        """Return the maximum width of a text line in the editor, for a given column width."""
        ...

    @property
    def markdown(self) -> Sequence[MarkdownRows]:
        """Markdown texts of the message, in the order in which the layout parses them."""
        ...

    def plain_text(self) -> str | None:
        """Return the text if the message is plain text, or None if it is Markdown."""
        ...

    def source_text(self, ordinal: int) -> str:
        """Return the text from which the row with the given ordinal was made.

        TranscriptRow.source is a range of characters in this text.
        """
        ...

    def update(self, item: TranscriptItem) -> None:
        """Replace the item with a newer state of the same message."""
        ...

    def toggle(self, action: RowAction) -> None:
        """Fold or unfold the part of the message that the action refers to."""
        ...

    def make_rows(self, shown: Sequence[TranscriptRow], width: int) -> MessageRows:
        """Make the rows. Return the rows from the first one that differs from `shown` to the end.

        `shown` is the list of rows from the last call; it is empty if the layout has dropped them.
        The message must have at least one row, because a message without rows counts as not laid
        out.
        """
        ...

    def release(self) -> bool:
        """Drop the parsed text to save memory. Return False if the text cannot be dropped now."""
        ...
