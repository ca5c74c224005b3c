"""A prompt on its way into live caches, chunk by chunk. Requests and idle work both feed through here."""

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
        self.start = lease.hot.num_tokens
        self.end = len(token_ids)
        self._computation: Computation | None = None  # of a chunk that is fed in part
        self._logits: mx.array | None = None  # after it

    @property
    def fed(self) -> int:
        """Tokens in the caches."""
        return self.lease.hot.num_tokens

    @property
    def is_computing(self) -> bool:
        """Whether the newest chunk is computed in part."""
        return self._computation is not None

    def step(self, room: int, seconds: float = math.inf) -> mx.array | None:
        """Feed one chunk, or compute a part of it, and keep the point at its end.

        Args:
            room: tokens that the caches should hold without growing.
            seconds: how long this may take, about: one part of a layer at least is computed.

        Returns:
            The logits (V,) after a prompt's last token, None before.
        """
        if self._computation is None:
            self._computation = self._launch(room, in_blocks=seconds < math.inf)
        if not self._computation.compute_parts(seconds):
            return None
        self._computation = None
        # A new conversation has no buffers before its first chunk.
        self._cache.reserve_tokens(self.lease, room)
        logits, self._logits = self._logits, None
        return None if self.chunks else logits

    def cut(self, kind: PointKind) -> None:
        """Stop here: what is fed stays fed, with a point at its end."""
        points = self.lease.snapshots
        if self.fed > self.start and not (points and points[-1].num_tokens == self.fed):
            self._capture(kind, None)
            self._computation = self._compute({})
        if self._computation is not None:
            self._computation.compute_parts()

    def _capture(self, kind: PointKind, logits: mx.array | None) -> None:
        # No request resumes from a side request.
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
        # To keep what attention gives costs time: a tenth on a small model.
        return self._compute(attended if in_blocks else {})

    def _compute(self, attended: Mapping[int, list[mx.array]]) -> Computation:
        """In parts: what a layer's cache holds, and what each block of its attention gives."""
        parts: list[list[mx.array]] = []
        for leaf in leaves_of(self.lease.hot.caches):
            parts.append(list(arrays_in(vars(leaf))))
            parts.extend([block] for block in attended.get(id(leaf), ()))
        points = self.lease.snapshots
        # A kept point is computed with the rest, else it would hold on to all that it is made from.
        kept = (points[-1].states, points[-1].logits) if points else ()
        return Computation([*parts, list(arrays_in((kept, self._logits)))])
