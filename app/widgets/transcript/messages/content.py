"""The protocol that the content of a message implements, and the rows that it returns. Main thread.

UserContent (user.py) and AnswerContent (answer.py) implement MessageContent. A content holds one
TranscriptItem and makes its rows, but has no coordinates. Each content belongs to one MessageLayout
(message.py), which calls make_rows() when is_changed is set, and parses Markdown slice by slice
through `markdown`. The MessageShape that comes with the rows tells the layout which rows have text
and which are painted in a bubble.
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
    """The roles of the rows of a message. Rows are given by their index."""

    text: TextSections = TextSections()  # noqa: RUF009 - frozen
    bubble: Bubble | None = None  # None if the rows are painted on the canvas
    caret_row: int | None = None  # row with the caret after its text; None without a caret
    is_folded: bool = False  # True if a part of the text has no rows until it is unfolded
    is_cut_by_width: bool = False  # True if the end of the folded text depends on the width


@dataclass(frozen=True, slots=True)
class MessageRows:
    """The rows of a message from index `first` to the end. Rows before `first` are unchanged."""

    first: int
    rows: list[TranscriptRow]
    shape: MessageShape


class MessageContent(Protocol):
    """The text of one message, and the rows made from it."""

    item: TranscriptItem
    is_changed: bool  # True if the rows are out of date; make_rows() sets it to False

    @property
    def text(self) -> str:
        """The text that the copy button copies."""
        ...

    @property
    def markdown(self) -> Sequence[MarkdownRows]:
        """Markdown texts of the message, in the order in which the layout parses them."""
        ...

    def plain_text(self) -> str | None:
        """Return the text of a message without Markdown, else None."""
        ...

    def source_text(self, ordinal: int) -> str:
        """Return the text that TranscriptRow.source indexes for the row with this ordinal."""
        ...

    def update(self, item: TranscriptItem) -> None:
        """Replace the item by a newer state of the same message."""
        ...

    def toggle(self, action: RowAction) -> None:
        """Fold or unfold the part of the message that the action names."""
        ...

    def make_rows(self, shown: Sequence[TranscriptRow], width: int) -> MessageRows:
        """Return the rows that differ from the shown ones, and all rows after them."""
        ...

    def release(self) -> bool:
        """Drop the parsed text; return False if the item is not enough to parse it again."""
        ...
