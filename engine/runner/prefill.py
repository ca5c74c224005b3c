"""Prefill: feed the unrestored part of a prompt, in chunks, to the live caches of a request.

Prompts of requests, the end of a reply, and prompts read ahead are all fed in this way. A chunk of
a request can be computed in several steps, so that running answers wait only a short time for their
next token.
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
    """The prefill of one prompt into the caches of a lease. Engine thread only."""

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
        self.chunks = list(chunks)  # chunks that are still to be fed, in order
        self.start = lease.hot.num_tokens  # number of tokens in the caches before this prefill
        self.end = len(token_ids)  # length of the prompt
        # Computation of the launched chunk; None once it is complete.
        self._computation: Computation | None = None
        # Lazy logits (V,) after the prompt; None unless the launched chunk ends the prompt.
        self._logits: mx.array | None = None

    @property
    def fed(self) -> int:
        """Number of tokens in the caches."""
        return self.lease.hot.num_tokens

    @property
    def is_computing(self) -> bool:
        """True while a part of the newest chunk is still to be computed."""
        return self._computation is not None

    def step(self, room: int, seconds: float = math.inf) -> mx.array | None:
        """Feed the next chunk, or compute another part of the chunk that is already launched.

        A snapshot is captured at the end of the chunk if one is planned.

        Args:
            room: number of tokens that the K/V buffers should hold without growing.
            seconds: intended duration of the step. At least one part of the pass is computed, even
                if it takes longer.

        Returns:
            The logits (V,) after the last token of the prompt. None before the prompt is complete.
        """
        if self._computation is None:
            self._computation = self._launch(room, in_blocks=seconds < math.inf)
        if not self._computation.compute_parts(seconds):
            return None
        self._computation = None
        # _launch could reserve nothing for the first chunk of a new conversation, because the K/V
        # buffers are created when this chunk is fed. Therefore reserve again.
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
        # A side request needs no snapshots, because it is not published.
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
        # Divide attention into blocks only for steps with a time limit. On a small model, keeping
        # the attention outputs makes a pass take a tenth longer.
        return self._compute(attended if in_blocks else {})

    def _compute(self, attended: Mapping[int, list[mx.array]]) -> Computation:
        """Return the computation of a pass, divided into layer caches and attention blocks."""
        parts: list[list[mx.array]] = []
        for leaf in leaves_of(self.lease.hot.caches):
            parts.append(list(arrays_in(vars(leaf))))
            parts.extend([block] for block in attended.get(id(leaf), ()))
        points = self.lease.snapshots
        # Compute the newest snapshot with the pass. A lazy snapshot would keep all its input arrays
        # in memory.
        kept = (points[-1].states, points[-1].logits) if points else ()
        return Computation([*parts, list(arrays_in((kept, self._logits)))])
