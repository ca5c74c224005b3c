"""A few words on what the engine does while nobody waits. Pure."""

from __future__ import annotations

from app.viewmodels import figures
from engine.events import IdleKind, IdleWorking


def idle_note(event: IdleWorking) -> str:
    match event.kind:
        case IdleKind.READ_AHEAD:
            return f"Reading ahead · {_progress(event)}"
        case IdleKind.DRAFT:
            return f"Reading draft · {_progress(event)}"
        case IdleKind.AUDIT:
            return "Checking stored state"


def _progress(event: IdleWorking) -> str:
    return f"{figures.count(event.done)} of {figures.tokens(event.total)}"
