"""An error as a value, in words for the user. errors.py has exceptions that carry one. No mlx."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from typing_extensions import override


class ProblemKind(StrEnum):
    """Kinds of problems that the app treats differently. Its words are not compared for that."""

    OTHER = "other"
    NO_MODEL = "no model"  # a model folder cannot be used
    CONTEXT_FULL = "context full"  # a chat is too long for the model
    TEXT_TOO_LONG = "text too long"  # a new message alone is too long for the model
    PICTURE = "picture"  # the model can't get a picture of the chat
    TEMPLATE = "template"  # the chat template refused the messages
    CANNOT_CONTINUE = "cannot continue"  # the begun reply of a request can't be continued
    ANSWER_FORMAT = "answer format"  # an answer can't be kept to the format that a request asks for
    DAMAGED = "damaged"  # the content of the database is damaged
    PASSING = "passing"  # it failed for now, so that the same call may succeed later
    STOPPED = "stopped"  # the user stopped the work, so there is nothing to show


# Kinds whose cause may quote a request: names in a schema, or a text that a chat template raises
_QUOTING = (ProblemKind.ANSWER_FORMAT, ProblemKind.TEMPLATE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """The description of an error in words for the user."""

    title: str  # what happened
    cause: str  # why it happened
    advice: str  # what the user can do
    details: str = ""  # technical details for the log and bug reports
    kind: ProblemKind = ProblemKind.OTHER
    num_tokens: int = 0  # length of a prompt that exceeds the context; 0: another problem

    @property
    def log_text(self) -> str:
        """The text for the log, which must not quote what a user or a program wrote."""
        return self.title if self.kind in _QUOTING else str(self)

    @override
    def __str__(self) -> str:
        return " ".join(part for part in (self.title, self.cause, self.advice) if part)
