"""Texts of one line: the state line above an answer, and the note on idle work."""

from __future__ import annotations

from typing import Final

STARTING: Final = "Starting the engine · takes a few seconds"
CHECKING: Final = "Checking saved state"
NAMING: Final = "Naming a chat"


def loading(*, name: str, percent: str, share: str) -> str:
    return f"Loading {name} · {percent} · {share}"


def waiting(answers_ahead: int) -> str:
    if answers_ahead == 0:
        return "Waiting"
    if answers_ahead == 1:
        return "Waiting · 1 answer ahead"
    return f"Waiting · {answers_ahead} answers ahead"


# Meaning of the words on screen. "Read": prompt tokens were fed for the first time. "Restored": the
# cached state of prompt tokens was used, so they were not fed. "Replayed": prompt tokens were fed
# again.


def reading(*, share: str, time_left: str) -> str:
    """Return the progress of reading a prompt. time_left is empty if the time is unknown."""
    left = f" · about {time_left} left" if time_left else ""
    return f"Reading {share}{left}"


def read(*, tokens: str, time: str) -> str:
    return f"Read {tokens}{_in(time)}"


NOTHING_REREAD: Final = "Nothing re-read"


def restored(*, tokens: str, time: str, again: str, is_from_disk: bool) -> str:
    """Return a text about restored tokens. `again` is the number of re-read tokens, "" for none."""
    place = " from disk" if is_from_disk else ""
    return f"Restored {tokens}{place} in {time}, {again or 'nothing'} re-read"


# Causes of the text that `replayed` returns.
NOT_IN_MEMORY: Final = "the chat was not in memory"
MESSAGE_CHANGED: Final = "a message changed"
SYSTEM_CHANGED: Final = "the system prompt changed"
OPTIONS_CHANGED: Final = "the thinking options changed"
THINKING_DROPPED: Final = "the model’s template left out earlier thinking"
ANSWER_RENDERED: Final = "the model’s template changed an earlier answer"
MEMORY_NEEDED: Final = "their saved state had to make room"
CHAT_TOO_LARGE: Final = "the chat is larger than the memory for chats"
MODEL_RELOADED: Final = "the model was reloaded"
STATE_FAULTY: Final = "a saved state was damaged"


def replayed(*, tokens: str, time: str, again: str, cause: str) -> str:
    """Return a text about tokens that were read, `again` of them not for the first time."""
    why = f": {cause}" if cause else ""
    return f"Read {tokens}{_in(time)}, {again} of them again{why}"


def reading_ahead(percent: str) -> str:
    return f"Reading ahead · {percent}"


def _in(time: str) -> str:
    """Return " in" and the time, or an empty text if the time is unknown."""
    return f" in {time}" if time else ""


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
