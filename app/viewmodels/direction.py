"""Detection of right-to-left text. No Qt, no I/O."""

from __future__ import annotations

import re
from unicodedata import bidirectional

# The Unicode blocks of Hebrew, Arabic and other scripts that are written from right to left.
_FROM_RIGHT = re.compile(
    "[\u0590-\u08ff\u200f\ufb1d-\ufdff\ufe70-\ufeff\U00010800-\U00010fff\U0001e800-\U0001efff]"
)
_ISOLATE, _END = "\u2067", "\u2069"  # right-to-left isolate, pop directional isolate
_STRONG = {"L": False, "R": True, "AL": True}


def has_right_to_left(text: str) -> bool:
    """Return True if the text contains a character of a right-to-left script."""
    return not text.isascii() and _FROM_RIGHT.search(text) is not None


def is_right_to_left(text: str) -> bool:
    """Return True if the first letter of the text is right-to-left.

    The first letter decides the direction of a whole paragraph.
    """
    if not has_right_to_left(text):
        return False
    kinds = map(bidirectional, text)
    return next((_STRONG[kind] for kind in kinds if kind in _STRONG), False)


def isolated(text: str) -> str:
    """Return a text that is shown in its own direction inside a line from left to right.

    Without it, a question mark after a Hebrew text would stand at the wrong end.
    """
    return f"{_ISOLATE}{text}{_END}" if is_right_to_left(text) else text
