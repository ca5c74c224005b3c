"""Which tokens an engine has processed before. Standard library only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field


@dataclass(slots=True)
class ProcessedTokens:
    """Every token sequence that an engine has processed, as prompt or as output."""

    _edges: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])

    def known_len(self, token_ids: Sequence[int]) -> int:
        """How many tokens from the first one on were processed before."""
        node = 0
        for position, token_id in enumerate(token_ids):
            if (node := self._edges.get((node, token_id), -1)) < 0:
                return position
        return len(token_ids)

    def add(self, token_ids: Iterable[int]) -> int:
        """How many tokens from the first one on were processed before; now all of them are."""
        node = known = 0
        for token_id in token_ids:
            edge = (node, token_id)
            known += edge in self._edges
            node = self._edges.setdefault(edge, len(self._edges) + 1)
        return known

    def add_answer(
        self, prompt_ids: tuple[int, ...], output_ids: tuple[int, ...], *, restored: int
    ) -> int:
        """The redo of a request: fed tokens of its prompt whose whole prefix was processed before."""
        known = self.add(prompt_ids + output_ids)
        return max(0, min(known, len(prompt_ids)) - restored)
