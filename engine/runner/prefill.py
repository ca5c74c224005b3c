"""Prefill: feeds the part of a prompt that was not restored into live caches, chunk by chunk.

Requests, the end of a reply, and reading ahead all feed tokens in this way. A chunk of a request
can be computed in several steps, so that running answers wait only a short time for their next
token.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import mlx.core as mx

from engine.cache.holdings import Lease
from engine.cache.layout import leaves_of
from engine.cache.points import PointKind
from engine.cache.prefix_cache import PrefixCache
from engine.cache.trees import arrays_in
from engine.models.attention import watched
from engine.models.loader import LoadedModel
from engine.runner.chunks import Chunk
from engine.runner.computation import Computation


class Prefill:
    """The feeding of one prompt to the caches of a lease. Engine thread only."""

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
        self.start = lease.hot.num_tokens  # number of tokens restored
        self.end = len(token_ids)  # length of the prompt
        self._computation: Computation | None = None  # of the launched chunk, until it is complete
        self._logits: mx.array | None = None  # (V,), lazy, if the launched chunk ends the prompt

    @property
    def fed(self) -> int:
        """Number of tokens in the caches."""
        return self.lease.hot.num_tokens

    @property
    def is_computing(self) -> bool:
        """True while a part of the newest chunk is not computed yet."""
        return self._computation is not None

    def step(self, room: int, seconds: float = math.inf) -> mx.array | None:
        """Feed one chunk, or compute a part of it, and keep the snapshot planned at its end.

        Args:
            room: number of tokens that the K/V buffers should hold without growing.
            seconds: approximate duration of the step. At least one part of a layer is computed.

        Returns:
            The logits (V,) after the last token of the prompt, None before.
        """
        if self._computation is None:
            self._computation = self._launch(room, in_blocks=seconds < math.inf)
        if not self._computation.compute_parts(seconds):
            return None
        self._computation = None
        # Reserve here too: a new conversation has no K/V buffers before its first chunk is fed.
        self._cache.reserve_tokens(self.lease, room)
        logits, self._logits = self._logits, None
        return None if self.chunks else logits

    def cut(self, kind: PointKind) -> None:
        """Stop feeding. Keep the tokens fed so far, with a snapshot at their end."""
        points = self.lease.snapshots
        if self.fed > self.start and not (points and points[-1].num_tokens == self.fed):
            self._capture(kind, None)
            self._computation = self._compute({})
        if self._computation is not None:
            self._computation.compute_parts()

    def _capture(self, kind: PointKind, logits: mx.array | None) -> None:
        # A side request publishes nothing, so no later request can resume from it.
        is_of_use = self._model.layout.needs_snapshot or logits is not None
        if is_of_use and not self.lease.side:
            self._cache.capture_snapshot(self.lease, kind, logits)

    def _launch(self, room: int, *, in_blocks: bool) -> Computation:
        self._cache.reserve_tokens(self.lease, room)
        chunk = self.chunks.pop(0)
        token_ids = self._token_ids[self.fed : chunk.end]
        with watched() as attended:
            logits = self._model.adapter.forward(token_ids, self.lease.hot.caches)
        self.lease.hot.commit(token_ids)
        self._logits = logits if chunk.kind is PointKind.PROMPT else None
        if chunk.kind is not None:
            self._capture(chunk.kind, self._logits)
        # Keeping the outputs of attention takes time: a tenth more on a small model.
        return self._compute(attended if in_blocks else {})

    def _compute(self, attended: Mapping[int, list[mx.array]]) -> Computation:
        """Return the computation of a pass in parts: caches of layers, and blocks of attention."""
        parts: list[list[mx.array]] = []
        for leaf in leaves_of(self.lease.hot.caches):
            parts.append(list(arrays_in(vars(leaf))))
            parts.extend([block] for block in attended.get(id(leaf), ()))
        points = self.lease.snapshots
        # Compute the newest snapshot with the pass. A lazy snapshot would keep all arrays in memory
        # that it is computed from.
        kept = (points[-1].states, points[-1].logits) if points else ()
        return Computation([*parts, list(arrays_in((kept, self._logits)))])
