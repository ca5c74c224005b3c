"""Estimates of message heights from the lengths of the texts. Pure functions.

The range of the scroll bar is computed from these estimates, so that a long conversation opens
without parsing its messages.
"""

from __future__ import annotations

from app.theme.tokens import Size, Space, Type
from app.viewmodels.transcript import TranscriptItem
from app.widgets.transcript.messages.bubble import FOLD_LINES, FOLD_TEXT, SHARE
from app.widgets.transcript.rows.look import Look
from engine.types import Role

# Subtracted from the characters per line, to allow for the gaps between blocks.
_CHARS_PER_LINE_GAP = 6
# Empty space below the text of the footer, in pixels at zoom 1.
_ANSWER_SPACE_BELOW = (Size.CONTROL - Type.SMALL.line) // 2


def estimate_height(look: Look, item: TranscriptItem, width: int) -> int:
    """Return the estimated height of a message, without parsing its text."""
    if item.role is Role.USER:
        lines = FOLD_LINES * look.body.line
        text = estimate_text(look, item.text[:FOLD_TEXT], max(1, int(width * SHARE)))
        return min(text, lines) + look.px(2 * Space.M + Size.MESSAGE_GAP)
    pill = look.px(Size.THINKING_PILL + Space.L) if item.reasoning else 0
    footer = look.px(Size.CONTROL + Space.HAIR)
    return pill + estimate_text(look, item.text, width) + footer


def space_below(item: TranscriptItem) -> int:
    """Return the height of the empty space at the end of a message, in pixels at zoom 1."""
    return Size.MESSAGE_GAP if item.role is Role.USER else _ANSWER_SPACE_BELOW


def estimate_text(look: Look, text: str, width: int) -> int:
    """Return the estimated height of a Markdown text, without parsing it."""
    if not text:
        return 0
    face = look.body
    per_line = max(1, int(width / face.average) - _CHARS_PER_LINE_GAP)
    num_lines = text.count("\n") * 2 // 3 + len(text) // per_line + 1
    return num_lines * face.line + text.count("\n\n") * look.px(Space.M)
