"""The documents of a folder as its widgets show them: sizes, states, and progress of reading."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from itertools import pairwise

from app.conversation.folder import Folder
from app.conversation.placement import FolderId
from engine.events import ModelFacts
from engine.problem import Problem
from engine.questions import TokensCounted


class DocumentState(Enum):
    """The state of a document, or of all documents of a folder, for the model in use."""

    NO_MODEL = auto()  # no model is ready
    WAITING = auto()  # not read yet
    READING = auto()  # being read
    IN_MEMORY = auto()  # ready
    ON_DISK = auto()  # ready: the first answer reads the state from disk
    TOO_LONG = auto()  # no room in the context of the model
    NO_MEMORY = auto()  # no room in the memory for chats


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentStatus:
    """A document of a folder, for the model in use."""

    name: str
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
    is_paused: bool = False  # True: the user has paused the reading of these documents
    is_off: bool = False  # True: reading ahead is off in the settings
    problem: Problem | None = None  # of a message that is too long with these documents, if counted

    @property
    def num_left(self) -> int | None:
        """The tokens of the context that the documents leave. 0 if they are too long."""
        if self.num_tokens is None or self.context_len is None:
            return None
        return max(0, self.context_len - self.num_tokens)


@dataclass(frozen=True, slots=True)
class Held:
    """The cached state of a folder's documents."""

    memory_tokens: int = 0  # number of tokens up to the deepest resume point in memory
    disk_tokens: int = 0  # the same on disk

    @property
    def num_tokens(self) -> int:
        return max(self.memory_tokens, self.disk_tokens)


def documents_status(  # noqa: PLR0913 (the state depends on each)
    folder: Folder,
    *,
    facts: ModelFacts | None,
    counted: TokensCounted | None,
    is_far_too_long: bool,
    held: Held,
    budget_bytes: int,
    num_reading: int | None,
    seconds_left: float | None,
    is_paused: bool,
    is_off: bool,
) -> FolderDocumentsStatus:
    """Return the state of a folder's documents.

    Args:
        folder: the folder.
        facts: the loaded model; None if no model is ready.
        counted: the size of the beginning of a new chat; None if it is not counted.
        is_far_too_long: True if the documents are so long that they are not counted.
        held: the cached state.
        budget_bytes: highest size of the state of these documents in memory; 0 if not known.
        num_reading: tokens that are cached or fed, while the documents are being read; else None.
        seconds_left: expected seconds until all is read; None if not known.
        is_paused: FolderDocumentsStatus.is_paused.
        is_off: FolderDocumentsStatus.is_off.
    """
    # Without the number of tokens, a document has neither a size nor a known state.
    ends = () if counted is None else counted.part_ends[1:]
    num_tokens = None if counted is None else counted.num_tokens
    if facts is None:
        state = DocumentState.NO_MODEL
    elif is_far_too_long or (counted is not None and _is_too_long(counted, facts)):
        state = DocumentState.TOO_LONG
    elif num_tokens is not None and held.memory_tokens >= num_tokens:
        state = DocumentState.IN_MEMORY
    elif num_tokens is not None and held.disk_tokens >= num_tokens:
        state = DocumentState.ON_DISK
    elif num_reading is not None:
        state = DocumentState.READING
    elif num_tokens is not None and state_bytes(num_tokens, facts) > budget_bytes > 0:
        state = DocumentState.NO_MEMORY
    else:
        state = DocumentState.WAITING
    if counted is not None and not held.num_tokens:
        # Other chats have read some of the documents, for example those before a changed one.
        held = Held(counted.num_cached - counted.num_on_disk, counted.num_cached)
    num_read = max(held.num_tokens, num_reading or 0)
    states = _states(ends, state, held, num_reading, facts)
    sizes = [end - start for start, end in pairwise(counted.part_ends if counted else ())]
    return FolderDocumentsStatus(
        folder_id=folder.folder_id,
        name=folder.name,
        documents=tuple(
            DocumentStatus(
                name=document.attachment.name,
                num_tokens=sizes[place] if place < len(sizes) else None,
                state=states[place] if place < len(states) else state,
            )
            for place, document in enumerate(folder.documents)
        ),
        state=state,
        num_tokens=num_tokens,
        context_len=None if facts is None else facts.context_len,
        num_read=num_read if num_tokens is None else min(num_read, num_tokens),
        seconds_left=seconds_left,
        is_paused=is_paused,
        is_off=is_off,
        problem=None if counted is None else counted.refusal,
    )


def _is_too_long(counted: TokensCounted, facts: ModelFacts) -> bool:
    return counted.refusal is not None or counted.num_tokens >= facts.context_len


def state_bytes(num_tokens: int, facts: ModelFacts) -> int:
    """Return the least size of the state after some tokens, in bytes."""
    return num_tokens * facts.kv_bytes_per_token + facts.snapshot_bytes


def _states(
    ends: Sequence[int],
    state: DocumentState,
    held: Held,
    num_reading: int | None,
    facts: ModelFacts | None,
) -> list[DocumentState]:
    """Return the state of each document, from the positions where the documents end."""
    states: list[DocumentState] = []
    is_reading = num_reading is not None
    for end in ends:
        if facts is not None and state is DocumentState.TOO_LONG:
            states.append(state if end >= facts.context_len else DocumentState.WAITING)
        elif end <= max(held.memory_tokens, num_reading or 0):
            states.append(DocumentState.IN_MEMORY)
        elif end <= held.disk_tokens:
            states.append(DocumentState.ON_DISK)
        elif is_reading:
            states.append(DocumentState.READING)
            is_reading = False
        else:
            states.append(DocumentState.WAITING if state is DocumentState.READING else state)
    return states
