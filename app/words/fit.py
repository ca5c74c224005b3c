"""Sentences about a model and the memory for models, of this machine or of several Macs."""

from __future__ import annotations

from typing import Final

TIGHT: Final = "Tight: other apps may slow down"
IS_GGUF: Final = "This model is a GGUF file, which is not measured."
IMPORT_FIRST: Final = "Open it in Rejoinder, which imports it."
NO_WEIGHTS: Final = "This repository has no model in MLX format."
MLX_FORMAT: Final = "Choose another repository, such as one of mlx-community."


def fits(num_chats: int) -> str:
    chats = "1 chat" if num_chats == 1 else f"about {num_chats:,} chats"
    return f"Fits, with room for {chats} of 8,000 tokens"


def too_large(*, needed: str, given: str) -> str:
    """Return the sentence about a model that does not fit. The numbers include their units."""
    return f"Too large: needs {needed}, and models can use {given}"


def speed(rate: int) -> str:
    return f"about {rate:,} tokens a second (estimate)"
