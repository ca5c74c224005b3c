"""What the transcript shows: frozen values, one TranscriptItem per message of the visible branch.

Controllers make them from messages and engine events; the view only reads them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from app.viewmodels.state_line import Phase, StateLine, state_line
from engine.types import Problem, Role


class ItemStatus(StrEnum):
    """How far a message is. User messages are always complete."""

    STREAMING = "streaming"
    COMPLETE = "complete"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Version:
    """This message is the number-th (from 1) of count siblings."""

    number: int = 1
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyFigures:
    """What the footer of an answer says. model_name only where the model changed."""

    decode_tok_s: float | None = None
    first_token_s: float | None = None
    num_tokens: int | None = None
    model_name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptItem:
    """One message as it is shown. key is its node id in the message tree."""

    key: str
    role: Role
    text: str
    reasoning: str = ""
    reasoning_s: float | None = None
    status: ItemStatus = ItemStatus.COMPLETE
    version: Version = Version()
    figures: ReplyFigures | None = None
    phase: Phase | None = None  # of an answer: what is done for it, or was
    problem: Problem | None = None
    cut: str = ""  # why the answer ends before its end
    can_continue: bool = False
    can_delete: bool = False
    editing: bool = False

    @property
    def state_line(self) -> StateLine | None:
        """Worded when it is asked for: of most answers it never is."""
        return None if self.phase is None else state_line(self.phase)


@dataclass(frozen=True, slots=True)
class ScrollPosition:
    """A place in a transcript that survives changes of width: pixels below a message's top."""

    key: str
    offset: int
