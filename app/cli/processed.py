"""Which tokens an engine has processed before. Standard library only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(slots=True)
class ProcessedTokens:
    """Every token sequence that an engine has processed, as prompt or as output."""

    _edges: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])

    def add(self, token_ids: Sequence[int]) -> int:
        """How many tokens from the first one on were processed before; now all of them are."""
        node = known = 0
        for token_id in token_ids:
            edge = (node, token_id)
            known += edge in self._edges
            node = self._edges.setdefault(edge, len(self._edges) + 1)
        return known
