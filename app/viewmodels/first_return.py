"""The note after the first return to a chat that spared much time. No Qt, no I/O.

The note has the number of restored tokens that the line above the answer has (state_line.py).
"""

from __future__ import annotations

from app.viewmodels import figures
from app.viewmodels.reading import reading_time
from app.words import promise as words
from engine.reading_pace import ReadingTime
from engine.usage import Usage

MIN_SPARED_S = 2.0
# Largest share of the restored tokens that may have been read ahead since the last answer.
_MAX_AHEAD = 0.1


def return_note(usage: Usage, needed: ReadingTime) -> str:
    """Return the note, or an empty string if at most MIN_SPARED_S were spared.

    Args:
        usage: that of the answer after the return.
        needed: the time that reading the restored tokens takes.
    """
    num_tokens = usage.plan.restored
    if needed.seconds - usage.restore_ms / 1000 <= MIN_SPARED_S:
        return ""
    if usage.plan.restored_ahead > _MAX_AHEAD * num_tokens:  # they were not spared
        return ""
    return words.remembered(
        num_tokens=num_tokens,
        time=figures.milliseconds(usage.restore_ms),
        spared=reading_time(needed),
    )
