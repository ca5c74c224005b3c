"""Text of models and files for a terminal, without control characters.

A terminal obeys escape sequences: they can change its title, move the cursor or write to the
clipboard. So every character that is not printable is replaced, except for line breaks, tabs, and
the invisible characters that join letters and emoji.
"""

from __future__ import annotations

from typing import Final

_KEPT: Final = "\n\t\N{ZERO WIDTH JOINER}\N{ZERO WIDTH NON-JOINER}\N{NO-BREAK SPACE}"
_REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"


def for_terminal(text: str) -> str:
    """Return text that is safe to print to a terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in _KEPT else _REPLACEMENT for c in text)
