"""The values that the transcript shows: one TranscriptItem per message of the visible branch.

items.py makes the items from stored messages and from replies that are being written, after every
change of the conversation on show. Items are frozen: new items are compared with the old ones
(app/widgets/transcript/binding.py), and only messages that differ are laid out again.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from app.viewmodels.state_line import Phase, StateLine, state_line
from engine.types import Problem, Role


class ItemStatus(StrEnum):
    """The states of a message. User messages are always complete."""

    STREAMING = "streaming"
    COMPLETE = "complete"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Version:
    """The position of a message among its versions: number (from 1) of count."""

    number: int = 1
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyFigures:
    """The figures in the footer of an answer. None means unknown."""

    decode_tok_s: float | None = None  # tokens per second
    first_token_s: float | None = None  # seconds from sending to the first token
    num_tokens: int | None = None
    model_name: str = ""  # only if another model wrote the answer before


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
    phase: Phase | None = None  # of an answer: the source of its state line
    problem: Problem | None = None  # why the answer failed
    cut: str = ""  # label that says why the answer ends early, such as "Stopped"
    can_continue: bool = False
    can_delete: bool = False
    editing: bool = False  # the message is open in an editor

    @property
    def state_line(self) -> StateLine | None:
        """State line above an answer. Made on access: most answers never show theirs."""
        return None if self.phase is None else state_line(self.phase)


@dataclass(frozen=True, slots=True)
class ScrollPosition:
    """A scroll position that survives changes of width: an offset from a message's top."""

    key: str  # key of the message's item
    offset: int  # pixels below the top of the message
