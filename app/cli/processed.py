"""A record of the tokens that an engine has processed. Standard library only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field


@dataclass(slots=True)
class ProcessedTokens:
    """A trie of all token sequences that an engine has processed, as prompt or as output."""

    # Key: parent node and token id. Value: child node. Node 0 is the root.
    _edges: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])

    def known_len(self, token_ids: Sequence[int]) -> int:
        """Return the length of the sequence's longest prefix that the engine has processed."""
        node = 0
        for position, token_id in enumerate(token_ids):
            if (node := self._edges.get((node, token_id), -1)) < 0:
                return position
        return len(token_ids)

    def add(self, token_ids: Iterable[int]) -> int:
        """Add a sequence. Return the length of its longest prefix that the trie already had."""
        node = known = 0
        for token_id in token_ids:
            edge = (node, token_id)
            known += edge in self._edges
            node = self._edges.setdefault(edge, len(self._edges) + 1)
        return known

    def add_answer(
        self, prompt_ids: tuple[int, ...], output_ids: tuple[int, ...], *, restored: int
    ) -> int:
        """Add the tokens of a finished request and return its redo.

        The redo is the number of prompt tokens that were fed although the engine had processed the
        same tokens, after the same prefix, before.
        """
        known = self.add(prompt_ids + output_ids)
        return max(0, min(known, len(prompt_ids)) - restored)
