"""A prompt on its way into live caches, chunk by chunk. Requests and idle work both feed through here."""

from __future__ import annotations

from collections.abc import Sequence

import mlx.core as mx

from engine.cache.held import Lease
from engine.cache.prefix_cache import PrefixCache
from engine.cache.trees import evaluate
from engine.chat.prompt import PointKind
from engine.models.loader import LoadedModel
from engine.runner.chunks import Chunk


class Prefill:
    """Feeds what the caches of a lease lack of a prompt. Engine thread only."""

    def __init__(
        self,
        model: LoadedModel,
        cache: PrefixCache,
        lease: Lease,
        token_ids: Sequence[int],
        chunks: Sequence[Chunk],
    ) -> None:
        self._model = model
        self._cache = cache
        self._token_ids = token_ids
        self.lease = lease
        self.chunks = list(chunks)  # still to be fed, in order
        self.start = lease.hot.n_tokens
        self.end = len(token_ids)

    @property
    def fed(self) -> int:
        """Tokens in the caches."""
        return self.lease.hot.n_tokens

    def step(self, room: int) -> mx.array | None:
        """Feed one chunk and keep the point at its end.

        Args:
            room: tokens that the caches should hold without growing.

        Returns:
            The logits (V,) after a prompt's last token, None before.
        """
        chunk = self.chunks.pop(0)
        token_ids = self._token_ids[self.fed : chunk.end]
        self._cache.reserve(self.lease, room)
        logits = self._model.adapter.forward(token_ids, self.lease.hot.caches)
        self.lease.hot.commit(token_ids)
        # A new conversation has no buffers before its first chunk.
        self._cache.reserve(self.lease, room)
        kept = logits if chunk.kind is PointKind.PROMPT else None
        if chunk.kind is not None:
            self._capture(chunk.kind, kept)
        self._evaluate(kept)
        return kept

    def cut(self, kind: PointKind) -> None:
        """Stop here: what is fed stays fed, with a point at its end."""
        points = self.lease.snapshots
        if self.fed > self.start and not (points and points[-1].n_tokens == self.fed):
            self._capture(kind, None)
            self._evaluate(None)

    def _capture(self, kind: PointKind, logits: mx.array | None) -> None:
        # Nobody goes on from a side request.
        is_of_use = self._model.layout.needs_snapshot or logits is not None
        if is_of_use and not self.lease.side:
            self._cache.capture(self.lease, kind, logits)

    def _evaluate(self, logits: mx.array | None) -> None:
        leaves = self.lease.hot.leaves
        points = self.lease.snapshots
        # A kept point is evaluated with the rest, else it would hold on to all it is computed from.
        kept = (points[-1].states, points[-1].logits) if points else ()
        evaluate(leaves.buffers, leaves.states, kept, logits)
