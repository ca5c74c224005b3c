"""The values that the transcript shows: one TranscriptItem per message of the visible branch.

After every change of the conversation on show, items.py makes new items from the stored messages
and from the replies that are being written. Items are frozen values, so that
app/widgets/transcript/binding.py can compare new and old items and lay out only messages that
differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from app.conversation.quotes import QuotedFile
from app.viewmodels.attachments import Chip
from app.viewmodels.phases import Phase, Planned
from app.viewmodels.state_line import StateLine, state_line
from engine.problem import Problem
from engine.types import Role


class ItemStatus(StrEnum):
    """The states of a message. User messages are always complete."""

    STREAMING = "streaming"
    COMPLETE = "complete"
    STOPPED = "stopped"
    FAILED = "failed"
    UNANSWERED = "unanswered"  # no answer was requested: an imported chat ends with a question


@dataclass(frozen=True, slots=True)
class Version:
    """The position of a message among its versions, shown as "2 of 3". Numbers begin at 1."""

    number: int = 1
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyFigures:
    """The figures in the footer of an answer. A figure is None if it is unknown."""

    decode_tok_s: float | None = None  # tokens per second
    first_token_s: float | None = None  # seconds from sending to the first token
    num_tokens: int | None = None  # of the whole answer
    # Number of tokens of a continued answer's last part, which the other figures are about. None if
    # the answer was written in one part, or if the last part has no token.
    num_last: int | None = None
    model_name: str = ""
    names_model: bool = False  # True if several models answered: the name is on show at any time


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptItem:
    """One message as the transcript shows it."""

    key: str  # node id of the message in the message tree
    role: Role
    text: str
    reasoning: str = ""
    reasoning_s: float | None = None  # duration of the reasoning in seconds; None if unknown
    status: ItemStatus = ItemStatus.COMPLETE
    version: Version = Version()
    figures: ReplyFigures | None = None
    phase: Phase | None = None  # for an answer: the phase that its state line shows
    is_late: bool = False  # True if even a minor line is shown: the answer has no text for long
    problem: Problem | None = None  # the reason why the answer failed
    cut: str = ""  # label that says why the answer ends early or is empty, such as "Stopped"
    can_continue: bool = False
    can_retry: bool = False  # True for an empty answer that can be requested again
    can_delete: bool = False
    editing: bool = False  # True if the message is open in an editor
    # True in a column of several answers: the column's header has the buttons but Copy
    is_column: bool = False
    files: tuple[Chip, ...] = ()  # attached files of a user message
    folder: str = ""  # name of the folder of the documents in `files`; empty if it is unknown
    quotes: tuple[QuotedFile, ...] = ()  # documents with words of the answer

    @property
    def state_line(self) -> StateLine | None:
        """The origin of the context. It is made on access, because most answers never show it."""
        return None if self.phase is None else state_line(self.phase)

    @property
    def line_above(self) -> StateLine | None:
        """The state line that is shown above the answer: none if it is minor, and not late."""
        if self._waits_with_text:
            return None
        line = self.state_line
        return None if line is None or (line.is_minor and not self.is_late) else line

    @property
    def line_below(self) -> StateLine | None:
        """The state line that is shown at the end of an answer that waits to be continued.

        The user has just pressed Continue there, and the line above may be far away.
        """
        return self.state_line if self._waits_with_text else None

    @property
    def _waits_with_text(self) -> bool:
        is_streaming = self.status is ItemStatus.STREAMING and bool(self.text)
        return is_streaming and not isinstance(self.phase, Planned)


@dataclass(frozen=True, slots=True)
class ScrollPosition:
    """A scroll position relative to a message, so that it stays valid if the width changes."""

    key: str  # TranscriptItem.key of the message
    offset: int  # pixels below the top of the message
