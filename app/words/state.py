"""Texts of one line: the state line above an answer, and the note on idle work."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

STARTING: Final = "Starting the engine · takes a few seconds"
CHECKING: Final = "Checking saved state"
NAMING: Final = "Naming a chat"
PREVIEWING: Final = "Previewing an answer"

# States of a chat in the list. The cost of its next message follows.
IN_MEMORY: Final = "In memory"
ON_DISK: Final = "On disk"
TO_BE_READ: Final = "To be read"


def loading(*, name: str, percent: str, share: str) -> str:
    """Return the progress of loading a model. share is empty if its size is unknown."""
    return f"Loading {name} · {percent}" + (f" · {share}" if share else "")


def waiting(answers_ahead: int) -> str:
    if answers_ahead == 0:
        return "Waiting"
    if answers_ahead == 1:
        return "Waiting · 1 answer ahead"
    return f"Waiting · {answers_ahead} answers ahead"


WAITING_TO_READ: Final = "Waiting until another chat is read"
WAITING_FOR_MESSAGES: Final = "Waiting until the messages are read"
WAITING_TO_ANSWER: Final = "Waiting until an answer in another chat ends"
WAITING_FOR_MEMORY: Final = "Waiting for memory that answers in other chats use"
WAITING_FOR_ANSWERS: Final = "Waiting until another answer ends"
WAITING_FOR_ANSWER_MEMORY: Final = "Waiting for memory that other answers use"
WAITING_FOR_STEP: Final = "Waiting until a part of another chat is read"
WAITING_FOR_DOCUMENTS: Final = "Waiting until a part of a folder’s documents is read"
STOPPING: Final = "Stopping…"
WAITING_FOR_MODEL: Final = "Waiting for the model"


def waiting_to_read(title: str) -> str:
    return f"Waiting until “{title}” is read"


def waiting_for_step(title: str) -> str:
    """Return the line of a message that waits while a part of another chat is read."""
    return f"Waiting until a part of “{title}” is read"


def waiting_for_documents(folder: str) -> str:
    """Return the line of a message that waits while a part of a folder's documents is read."""
    return f"Waiting until a part of the documents of “{folder}” is read"


def waiting_to_close(name: str) -> str:
    """Return the line of a message that waits until the model before is unloaded."""
    return f"Waiting until {name} is unloaded"


def more_ahead(text: str, count: int) -> str:
    return f"{text} · {count:,} more ahead"


# Meaning of the words on screen. "Read": prompt tokens were fed. "Restored": the cached state of
# prompt tokens was used, so they were not fed. "Again": the tokens had been fed before.


def reading(*, share: str, time_left: str) -> str:
    """Return the progress of reading a prompt. time_left is empty if the time is unknown."""
    return f"Reading {share}{f' · {time_left}' if time_left else ''}"


def about(time: str) -> str:
    return f"about {time} left"


def up_to(time: str) -> str:
    return f"up to about {time} left"


def line(clauses: Iterable[str]) -> str:
    """Join clauses. The first one begins with a capital letter."""
    text = " · ".join(clauses)
    return text[:1].upper() + text[1:]


def restored(tokens: str, *, from_disk: str, is_all: bool) -> str:
    """Return the clause about restored tokens. `from_disk` is "" if none came from disk."""
    if not from_disk:
        return f"Restored {tokens}"
    return f"Restored {tokens} from disk" if is_all else f"Restored {tokens}, {from_disk} from disk"


NOTHING_READ: Final = "nothing read"


def read_new(tokens: int) -> str:
    return "read 1 new token" if tokens == 1 else f"read {tokens:,} new tokens"


def read(tokens: str, cause: str) -> str:
    return f"read {tokens}{_because(cause)}"


def read_again(tokens: str, cause: str) -> str:
    return f"read {tokens} again{_because(cause)}"


def read_partly_again(tokens: str, again: str, cause: str) -> str:
    return f"read {tokens}, {again} of them again{_because(cause)}"


def _because(cause: str) -> str:
    return f": {cause}" if cause else ""


def stopped(share: str) -> str:
    return f"read {share}, then stopped"


def first_word(time: str, *, loaded: str, queued: str) -> str:
    """Return the clause about the wait.

    Args:
        time: all of it.
        loaded: the part in which no model was ready, or "".
        queued: the other part before reading began, or "".
    """
    parts = [f"{loaded} of it loading the model"] * bool(loaded)
    parts += [f"{queued} of it waiting to begin"] * bool(queued)
    return ", ".join([f"first word after {time}", *parts])


def before_reading(*, loaded: str, queued: str) -> str:
    """Return the clause about the parts of the wait before reading, as in first_word()."""
    parts = [f"{loaded} loading the model"] * bool(loaded)
    parts += [f"{queued} waiting to begin"] * bool(queued)
    return ", ".join(parts)


def durations(*, restore: str, read: str) -> str:
    """Return a sentence about the two parts of the wait. A part that is "" did not happen."""
    parts = [f"restored in {restore}"] * bool(restore) + [f"read in {read}"] * bool(read)
    text = ", ".join(parts)
    return f"{text[:1].upper()}{text[1:]}."


def saved(time: str) -> str:
    """Return a sentence about the reading that was spared."""
    return f"Saved about {time} of reading."


def read_ahead(tokens: str) -> str:
    return f"{tokens} of those restored were read ahead, before you asked."


def more_reasons(number: int, tokens: str) -> str:
    return f"And {number} more reasons: {tokens}."


# Causes of the clause that `read` returns.
NOT_KEPT: Final = "their state was not kept"
INTERRUPTED: Final = "an answer was cut off before its state was saved"
MODEL_CHANGED: Final = "another model had read them"
MESSAGE_CHANGED: Final = "a message changed"
SYSTEM_CHANGED: Final = "the system prompt changed"
OPTIONS_CHANGED: Final = "the thinking options changed"
TOOLS_CHANGED: Final = "the list of tools changed"
THINKING_DROPPED: Final = "the model’s template left out earlier thinking"
TEXT_RENDERED: Final = "the model’s template changed earlier text"
MEMORY_NEEDED: Final = "their saved state had to make room"
CHAT_TOO_LARGE: Final = "the chat is larger than the memory for chats"
MODEL_RELOADED: Final = "the model was reloaded"
STATE_FAULTY: Final = "a saved state was damaged"

STORAGE: Final = "Room for Chats…"  # link to the settings
WHY: Final = "Why?"  # link to the window that explains what was read


def reading_ahead(percent: str) -> str:
    return f"Reading ahead · {percent}"


def statistics(
    *, size: str, budget: str, freed: str, process: str, is_broken: bool, **counts: int
) -> str:
    """Return the line of memory statistics that --debug shows.

    counts: each keyword is the label of its number; underscores are shown as spaces.
    """
    parts = [f"{name.replace('_', ' ')} {count:,}" for name, count in counts.items()]
    check = "an invariant is broken: see the log" if is_broken else "invariants hold"
    memory = f"Cache {size} of {budget}", f"freed buffers {freed}", f"process {process}"
    return " · ".join((*memory, *parts, check))
