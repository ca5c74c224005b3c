"""Which way a text is read. Pure."""

from __future__ import annotations

import re
from unicodedata import bidirectional

# The blocks of Hebrew, Arabic and their kin.
_FROM_RIGHT = re.compile(
    "[\u0590-\u08ff\u200f\ufb1d-\ufdff\ufe70-\ufeff\U00010800-\U00010fff\U0001e800-\U0001efff]"
)
_STRONG = {"L": False, "R": True, "AL": True}


def has_right_to_left(text: str) -> bool:
    """Whether some of it is read from the right."""
    return not text.isascii() and _FROM_RIGHT.search(text) is not None


def is_right_to_left(text: str) -> bool:
    """Whether the first letter is: it decides for a paragraph."""
    if not has_right_to_left(text):
        return False
    kinds = map(bidirectional, text)
    return next((_STRONG[kind] for kind in kinds if kind in _STRONG), False)
