"""Choice of the next record of a resume point that is not on disk yet. Engine thread only.

A resume point consists of the K/V of its path, its state and its logits. Each call hands one
missing record over to the writing thread, so that no step of the engine takes long.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from engine.cache.disk.index import Index, IndexedRecord, PathPosition
from engine.cache.disk.queue import COSTLY_S
from engine.cache.disk.rates import Rates
from engine.cache.disk.record import MAX_TOKENS, RecordKey, RecordKind
from engine.cache.disk.writer import RecordWriter
from engine.cache.holdings import Lease
from engine.cache.hot import KvNode, LentSpan
from engine.cache.layout import Layout
from engine.cache.points import PointKind
from engine.cache.radix import TokenRun, ancestry, path_run
from engine.cache.snapshot import Snapshot, capture
from engine.types import ConversationId

# Largest K/V of one record, in bytes. Longer spans become several records, so that one step of
# idle work stays short.
_RECORD_BYTES = 32 << 20
# Part of a prompt, 1 / _READ_AGAIN, that is read again if the app ends while it reads. The smaller
# it is, the more states are written, of up to 147 MiB each: about 17 for a prompt of 64,000 tokens.
_READ_AGAIN = 8


class PointSaver:
    """Hands the records of resume points over to the writer of one model's folder."""

    def __init__(
        self,
        namespace: str,
        index: Index,
        writer: RecordWriter,
        layout: Layout,
        rates: Rates,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create a saver.

        Args:
            namespace: the namespace of the model's records.
            index: the records on disk.
            writer: the writing thread.
            layout: the bytes per token and per snapshot of the model.
            rates: the learned seconds per token of reading.
            clock: function that returns the time in seconds that Lease.saved_at has.
        """
        self._namespace = namespace
        self._index = index
        self._writer = writer
        self._layout = layout
        self._rates = rates
        self._clock = clock

    def save_next(self, node: KvNode) -> bool:
        """Hand the next missing record of a resume point over. Return False if none is missing."""
        run = path_run(node)
        place = self._index.covered(run)
        end = place.num_tokens if place else 0
        if end < run.end:
            return self._save_kv(node, run, place, end)
        if place is None:
            return False
        self._index.add_users(place, set(node.users))
        return node.snapshot is not None and self._save_point(node.snapshot, place, node.users)

    def is_saved(self, node: KvNode) -> bool:
        """Return True if no record of a resume point is missing. See save_next."""
        run, snapshot = path_run(node), node.snapshot
        place = self._index.covered(run)
        if place is None or place.num_tokens < run.end:
            return False
        needed = [RecordKind.STATE] if self._layout.needs_snapshot else []
        if snapshot is not None and snapshot.logits is not None:
            needed.append(RecordKind.LOGITS)
        return all(self._index.point(place, kind) is not None for kind in needed)

    def save_reading(self, lease: Lease) -> None:
        """Hand over the state of a prompt that is still being read, if it took long to reach.

        Reading can take minutes. If the app ends meanwhile, state that is only in memory is lost.
        Call it between two passes.
        """
        hot, end = lease.hot, lease.hot.num_tokens
        if not self._is_costly(lease):
            return
        node = KvNode(hot.run, LentSpan(hot, 0, end), None)
        node.users = {hot.conversation_id}
        if self._layout.needs_snapshot:
            node.snapshot = capture(hot.leaves, end, PointKind.STRIDE)
        self._writer.collect()
        while self.save_next(node):
            if self._writer.is_behind:
                return  # the next chunk of the prompt hands over the rest
            self._writer.collect()
        earlier = self._state_at(node, lease.saved) if lease.saved > lease.restored else None
        if earlier and earlier.users == node.users and self._state_at(node, end):
            self._writer.remove(earlier)
        lease.saved, lease.saved_at = end, self._clock()

    def _is_costly(self, lease: Lease) -> bool:
        """Return True if the unsaved tokens took long to read and are a large part of all."""
        num_tokens, num_new = lease.hot.num_tokens, lease.hot.num_tokens - lease.saved
        seconds = max(self._clock() - lease.saved_at, self._rates.seconds(0, num_new))
        return seconds >= COSTLY_S and num_new * _READ_AGAIN >= num_tokens

    def _state_at(self, node: KvNode, num_tokens: int) -> IndexedRecord | None:
        place = self._index.covered(path_run(node).part(0, num_tokens))
        return place and self._index.point(place, RecordKind.STATE)

    def _save_kv(self, node: KvNode, run: TokenRun, place: PathPosition | None, start: int) -> bool:
        holder = next(above for above in ancestry(node) if above.start <= start)
        per_token = max(1, self._layout.kv_bytes_per_token)
        length = max(1, min(MAX_TOKENS, _RECORD_BYTES // per_token, holder.end - start))
        part = run.part(start, start + length)
        key = self._key(RecordKind.KV, place.entry.address if place else "", part)
        span = holder.span.range(start - holder.start, start - holder.start + length)
        return self._writer.write(key, span.leaves, PointKind.TAIL, node.users)

    def _save_point(
        self, snapshot: Snapshot, place: PathPosition, users: set[ConversationId]
    ) -> bool:
        parent, run = place.entry.address, TokenRun((), (), snapshot.num_tokens)
        has_state = self._index.point(place, RecordKind.STATE) is not None
        if self._layout.needs_snapshot and not has_state:
            key = self._key(RecordKind.STATE, parent, run)
            return self._writer.write(key, snapshot.states, snapshot.kind, users)
        if snapshot.logits is not None and self._index.point(place, RecordKind.LOGITS) is None:
            key = self._key(RecordKind.LOGITS, parent, run)
            return self._writer.write(key, (snapshot.logits,), snapshot.kind, users)
        return False

    def _key(self, kind: RecordKind, parent: str, run: TokenRun) -> RecordKey:
        return RecordKey(self._namespace, kind, parent, run)
