"""Text of models and files for a terminal, without control characters.

A terminal obeys escape sequences: they can change its title, move the cursor or write to the
clipboard.
"""

from __future__ import annotations

from app.conversation.text import harmless_text


def for_terminal(text: str) -> str:
    """Return text that is safe to print to a terminal."""
    return harmless_text(text)
