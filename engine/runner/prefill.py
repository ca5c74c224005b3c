"""Prefill: feed the unrestored part of a prompt, in chunks, to the live caches of a request.

Runner creates a Prefill in three cases, and each case has its own loop around `step`:

    the prompt of a request          Runner.read, until `step` returns logits
    a prompt that is read ahead      ReadAheadJob.step, while `is_left`
    the last token of a reply and    Feeder.feed_all, while `is_left`
    the template's text after it

`step` feeds one chunk (plan_chunks made the list): it launches the lazy forward pass, records the
tokens in the caches, captures a planned snapshot, and computes the pass. A chunk of a request can
be computed in several steps, so that running answers wait only a short time for their next token.
A Prefill lives as long as its sequence or job. The caches belong to its lease, not to the Prefill.

Tokens count as fed when the pass is launched. So if `step` or `cut` raises an error, the caller
must abandon the lease or cut the caches back, because the caches may not hold these tokens.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import mlx.core as mx

from engine.cache.holdings import Lease
from engine.cache.points import PointKind
from engine.cache.prefix_cache import PrefixCache
from engine.cache.trees import arrays_in
from engine.models.attention import Watched, watched
from engine.models.loader import LoadedModel
from engine.picture_ids import PICTURE_ID, has_pictures
from engine.runner.chunks import Chunk
from engine.runner.computation import Computation

# Longest intended duration of a step of a picture in seconds. The tower computes a large picture
# for seconds, and commands are carried out between two steps.
_PICTURE_STEP_S = 0.1


class Prefill:
    """The prefill of one prompt into the caches of a lease. Engine thread only."""

    def __init__(
        self,
        model: LoadedModel,
        cache: PrefixCache,
        lease: Lease,
        token_ids: Sequence[int],
        chunks: Sequence[Chunk],
        save: Callable[[Lease], None],
    ) -> None:
        """Create a prefill. No token is fed yet.

        Args:
            model: the loaded model.
            cache: the prefix cache of the model.
            lease: the lease of the request or job.
            token_ids: the token ids of the prompt.
            chunks: the parts of the prompt after the tokens that the caches hold.
            save: called after each chunk. It may write the newest resume point to disk.
        """
        self._model = model
        self._cache = cache
        self._token_ids = token_ids
        self._save = save
        self.lease = lease
        self.chunks = list(chunks)  # chunks that are still to be fed, in order
        self.start = lease.hot.num_tokens  # number of tokens in the caches before this prefill
        self.end = len(token_ids)  # length of the prompt
        self._is_picture = False  # True while a picture is encoded or fed
        # True while the next chunk is a picture whose embeddings are not computed yet.
        self._is_encoding = False
        # Their computation; None while the file of the picture is read, and once it is complete.
        self._encoding: Computation | None = None
        # Computation of the launched chunk; None once it is complete.
        self._computation: Computation | None = None
        # Lazy logits (V,) after the prompt; None unless the launched chunk ends the prompt.
        self._logits: mx.array | None = None
        # True if other stages compute the next chunk already.
        self._is_ahead = False

    @property
    def fed(self) -> int:
        """Number of tokens in the caches."""
        return self.lease.hot.num_tokens

    @property
    def is_computing(self) -> bool:
        """True while a part of the newest chunk, or of a picture's embeddings, is not computed."""
        return self._computation is not None or self._is_encoding

    @property
    def reads_pictures(self) -> bool:
        """True if pictures are still to be fed."""
        return has_pictures(self._token_ids[self.fed :])

    @property
    def is_left(self) -> bool:
        """True while a chunk is to be fed, or a part of one to be computed."""
        return bool(self.chunks) or self.is_computing

    def step(self, room: int, seconds: float = math.inf) -> mx.array | None:
        """Feed the next chunk, or compute another part of the chunk that is already launched.

        Call only while `is_left` is true. A snapshot is captured at the end of the chunk if one is
        planned.

        Args:
            room: number of tokens that the K/V buffers should hold without growing. For a request,
                it includes a reply of usual length (Sequence.room).
            seconds: intended duration of the step. At least one part of the pass is computed, even
                if it takes longer. Serving limits it while other answers are written. A step of a
                picture is always limited.

        Returns:
            The logits (V,) after the last token, once all chunks are computed. None before, and
            always None for a prompt that does not end with a PROMPT point: a prompt that is read
            ahead ends without logits.
        """
        if self._computation is None:
            self._is_picture = self._token_ids[self.fed] >= PICTURE_ID
        if self._is_picture:
            seconds = min(seconds, _PICTURE_STEP_S)
        if self._computation is None:
            if not self._encode(seconds):
                return None
            self._computation = self._launch(room, seconds)
        if not self._computation.compute_parts(seconds):
            return None
        self._computation = None
        # _launch could reserve nothing for the first chunk of a new conversation, because the K/V
        # buffers are created when this chunk is fed. Therefore reserve again.
        self._cache.reserve_tokens(self.lease, room)
        self._save(self.lease)
        logits, self._logits = self._logits, None
        return None if self.chunks else logits

    def cut(self, kind: PointKind) -> None:
        """Stop feeding. Keep the tokens fed so far, with a snapshot at their end.

        Runner calls this for a request that is cancelled during prefill, and ReadAheadJob for a job
        that is ended early. A launched chunk is computed to its end. The remaining chunks are not
        fed: do not call `step` afterwards. The caller then publishes the lease.

        kind: kind of the snapshot. A model that resumes at any token gets none.
        """
        if self._is_ahead:
            # Other stages have fed the next chunk. Feed it here too: their state cannot be undone.
            if self._computation is not None:
                self._computation.compute_parts()
            self._computation = self._launch(self.end, 0.0)
        points = self.lease.snapshots
        if self.fed > self.start and not (points and points[-1].num_tokens == self.fed):
            self._capture(kind, None)
            # Replace a running computation by one that also has the new snapshot. Its other parts
            # may be computed already and then cost nothing.
            self._computation = self._compute(Watched())
        if self._computation is not None:
            self._computation.compute_parts()

    def _encode(self, seconds: float) -> bool:
        """Compute a part of the embeddings of the next chunk, if it is a picture.

        Return True once no part is left. The caches do not change, so a prompt can be cut before a
        picture at any time until then.
        """
        if self._encoding is None:
            token_ids = self._token_ids[self.fed : self.chunks[0].end]
            parts = self._model.adapter.encode(token_ids, seconds)
            self._encoding = None if parts is None else Computation([part] for part in parts)
        self._is_encoding = self._encoding is None or not self._encoding.compute_parts(seconds)
        if not self._is_encoding:
            self._encoding = None
        return not self._is_encoding

    def _capture(self, kind: PointKind, logits: mx.array | None) -> None:
        # A model without auxiliary state needs a snapshot only for its logits: with them, the same
        # prompt needs no pass when the reply is regenerated.
        is_of_use = self._model.layout.needs_snapshot or logits is not None
        if is_of_use and self.lease.has_points:
            self._cache.capture_snapshot(self.lease, kind, logits)

    def _launch(self, room: int, seconds: float) -> Computation:
        self._cache.reserve_tokens(self.lease, room)
        chunk = self.chunks.pop(0)
        token_ids = self._token_ids[self.fed : chunk.end]
        with watched() as found:
            logits = self._model.adapter.forward(token_ids, self.lease.hot.caches)
        self.lease.hot.commit(token_ids)
        self._logits = logits if chunk.kind is PointKind.PROMPT else None
        if chunk.kind is not None:
            self._capture(chunk.kind, self._logits)
        # A chunk is sent ahead only without running answers: their next pass would wait for it.
        self._is_ahead = bool(self.chunks) and seconds == math.inf and self._send_ahead()
        # Divide attention into blocks only for steps with a time limit. On a small model, keeping
        # the attention outputs makes a pass take a tenth longer.
        return self._compute(found if seconds < math.inf else Watched())

    def _send_ahead(self) -> bool:
        token_ids = self._token_ids[self.fed : self.chunks[0].end]
        return self._model.adapter.send_ahead(token_ids, self.lease.hot.caches)

    def _compute(self, watched: Watched) -> Computation:
        """Return the computation of a chunk, divided into layer caches and attention blocks."""
        points = self.lease.snapshots
        # Compute the newest snapshot with the pass. A lazy snapshot would keep all its input arrays
        # in memory.
        kept = (points[-1].states, points[-1].logits) if points else ()
        last = list(arrays_in((kept, self._logits)))
        return Computation([*watched.parts(self.lease.hot.caches), last])
