"""The line above an answer, and what the engine does while nobody waits. Short: each is one line."""

from __future__ import annotations

from typing import Final

STARTING: Final = "Starting the engine · a few seconds, once per start"
CHECKING: Final = "Checking stored state"


def loading(*, name: str, percent: str, share: str) -> str:
    return f"Loading {name} · {percent} · {share}"


def waiting(answers_ahead: int) -> str:
    if answers_ahead == 0:
        return "Waiting"
    if answers_ahead == 1:
        return "Waiting · 1 answer ahead"
    return f"Waiting · {answers_ahead} answers ahead"


# To read is to feed a prompt's tokens; to restore, to go on from what was read before; to replay, to read
# again what was read before.


def reading(*, share: str, time_left: str) -> str:
    """time_left is empty where it is not known."""
    left = f" · about {time_left} left" if time_left else ""
    return f"Reading {share}{left}"


def read(*, tokens: str, time: str) -> str:
    return f"Read {tokens}{_in(time)}"


NOTHING_REREAD: Final = "Nothing re-read"


def restored(*, tokens: str, time: str) -> str:
    return f"Restored {tokens} in {time}, nothing re-read"


def replayed(*, tokens: str, read_too: str, time: str) -> str:
    return f"Replayed {tokens} · read {read_too}{_in(time)}"


def reading_ahead(share: str) -> str:
    return f"Reading ahead · {share}"


def reading_draft(share: str) -> str:
    return f"Reading draft · {share}"


def _in(time: str) -> str:
    """Nothing where the time is not known."""
    return f" in {time}" if time else ""


def statistics(*, share: str, is_broken: bool, **counts: int) -> str:
    """The line that --debug shows, in the engine's own terms; counts are named by their keywords."""
    parts = [f"{name.replace('_', ' ')} {count:,}" for name, count in counts.items()]
    check = "an invariant is broken: see the log" if is_broken else "invariants hold"
    return " · ".join((f"Cache {share}", *parts, check))
