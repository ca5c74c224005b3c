"""The caches of one conversation, and the shift of its positions by pictures.

A picture can take fewer positions than tokens (engine/picture_ids.py). The caches of a layer count
tokens, so the position of the next token is this number plus the shift. The ids of the tokens give
the shift, so it is not stored with cached state. Imports no mlx.
"""

from __future__ import annotations

from collections.abc import Sequence


class ConversationCaches(list[object]):
    """The model's cache objects for one conversation, one per layer."""

    shift = 0


def shift_of(caches: Sequence[object]) -> int:
    """Return the shift of caches, 0 for several conversations: their positions have the shift."""
    return caches.shift if isinstance(caches, ConversationCaches) else 0
