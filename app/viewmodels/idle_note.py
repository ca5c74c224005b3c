"""The text that tells the user which idle work the engine does. No Qt, no I/O."""

from __future__ import annotations

from app.viewmodels import figures
from app.words import state as words
from engine.events import IdleKind, IdleWorking


def idle_note(event: IdleWorking) -> str:
    match event.kind:
        # A prompt that ends with a message of the user is a DRAFT. The message may be an unsent
        # draft, or a sent one without an answer.
        case IdleKind.READ_AHEAD | IdleKind.DRAFT:
            return words.reading_ahead(percent_read(event))
        case IdleKind.PREVIEW:
            return words.PREVIEWING
        case IdleKind.TITLE:
            return words.NAMING
        case IdleKind.AUDIT:
            return words.CHECKING


def percent_read(event: IdleWorking) -> str:
    """Return the part of the prompt that is read. A job that was paused continues as a new job."""
    done, total = event.num_cached + event.done, event.num_cached + event.total
    return figures.percent(done / max(1, total))
