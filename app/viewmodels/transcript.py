"""What the transcript shows: frozen values, one TranscriptItem per message of the visible branch.

Controllers make them from messages and engine events; the view only reads them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from engine.types import Problem, Role


class ItemStatus(StrEnum):
    """How far a message is. User messages are always complete."""

    STREAMING = "streaming"
    COMPLETE = "complete"
    STOPPED = "stopped"
    FAILED = "failed"


class StateKind(StrEnum):
    """What was done with the conversation's state before the answer; decides the colour.

    WAITING says nothing about the state: a model loads, other answers come first. READ is what any
    message needs, its own tokens; only what was known before is REPLAYED.
    """

    WAITING = "waiting"
    READ = "read"
    INSTANT = "instant"
    ON_DISK = "on_disk"
    REPLAYED = "replayed"


@dataclass(frozen=True, slots=True)
class StateLine:
    """One line above an answer. fraction, 0 to 1, adds a progress bar; details are sentences."""

    kind: StateKind
    text: str
    fraction: float | None = None
    details: tuple[str, ...] = ()
    can_stop: bool = False  # Stop stands at its end
    short: str = ""  # what is said where there is no room for the text

    @property
    def explained(self) -> str:
        """All that can be said, a sentence a line."""
        return "\n".join((self.text, *self.details))


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
    state_line: StateLine | None = None
    problem: Problem | None = None
    cut: str = ""  # why the answer ends before its end
    can_continue: bool = False
    can_delete: bool = False
    editing: bool = False


@dataclass(frozen=True, slots=True)
class ScrollPosition:
    """A place in a transcript that survives changes of width: pixels below a message's top."""

    key: str
    offset: int
