"""Sentences about a model and this machine's memory."""

from __future__ import annotations

import sys
from typing import Final

_MACHINE: Final = "this Mac" if sys.platform == "darwin" else "this computer"
TIGHT: Final = "Tight: other apps will be slowed"


def fits(num_chats: int) -> str:
    chats = "1 chat" if num_chats == 1 else f"about {num_chats:,} chats"
    return f"Fits, with room for {chats} of 8,000 tokens"


def too_large(*, needed: str, given: str) -> str:
    """Return the sentence about a model that does not fit. The numbers include their units."""
    return f"Too large: needs {needed}, {_MACHINE} can give {given}"


def speed(rate: int) -> str:
    return f"about {rate:,} tokens a second (estimate)"
