"""The documents of a folder as its widgets show them: sizes, states, and progress of reading."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from app.conversation.placement import FolderId
from engine.problem import Problem


class DocumentState(Enum):
    """The state of a document, or of all documents of a folder, for the model in use."""

    NO_MODEL = auto()  # no model is ready
    WAITING = auto()  # not read yet
    READING = auto()  # being read
    IN_MEMORY = auto()  # ready
    ON_DISK = auto()  # ready: the first answer reads the state from disk
    TOO_LONG = auto()  # no room in the context of the model
    NO_MEMORY = auto()  # all documents together need more than the memory for chats


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentStatus:
    """A document of a folder, for the model in use."""

    name: str
    digest: str  # of its text
    num_tokens: int | None  # None if they are not counted
    state: DocumentState


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderDocumentsStatus:
    """The documents of a folder, for the model in use. Numbers of tokens are None if not known."""

    folder_id: FolderId
    name: str  # of the folder
    documents: tuple[DocumentStatus, ...]  # in the order in which the model reads them
    state: DocumentState  # of all documents together
    num_tokens: int | None = None  # of the start of a new chat: system prompt and documents
    context_len: int | None = None  # of the model in use
    num_read: int = 0  # tokens that are ready, also while the rest is being read
    seconds_left: float | None = None  # until all is read; None if not known or not being read
    is_paused: bool = False  # True: the user has paused reading in idle time
    is_off: bool = False  # True: reading ahead is off in the settings
    problem: Problem | None = None  # the reason why the documents cannot be read, if any

    @property
    def num_left(self) -> int | None:
        """The tokens of the context that the documents leave. 0 if they are too long."""
        if self.num_tokens is None or self.context_len is None:
            return None
        return max(0, self.context_len - self.num_tokens)
