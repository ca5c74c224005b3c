"""Cached state on disk that survives a restart. Engine thread only, except for file work.

The tier stands beside one PrefixCache and its radix tree:

    save    idle work, before eviction, in a long prompt, at the end: resume points become records
    fetch   before a request: records become nodes of the tree if that is sooner than feeding tokens

Nothing is written twice: a longer path adds only the K/V of its new tokens. writer.py writes and
deletes records, reader.py reads them.

A record that cannot be read is removed, and its tokens are fed again. If the folder cannot be used
any more, the tier switches itself off, and `problem` says why. No method raises an error of a file.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, cast

from engine.cache.disk.folder import RecordFolder
from engine.cache.disk.index import IndexedRecord, PathPosition
from engine.cache.disk.moving import ChatMove
from engine.cache.disk.queue import PointQueue
from engine.cache.disk.rates import Rates
from engine.cache.disk.reader import DamagedError, RecordReader
from engine.cache.disk.record import RecordKind
from engine.cache.disk.saving import PointSaver
from engine.cache.disk.shares import shares_on_disk
from engine.cache.disk.writer import DiskLimits, RecordWriter
from engine.cache.grafting import Graft, stored_end
from engine.cache.holdings import Lease
from engine.cache.hot import KvNode
from engine.cache.kv import KvArrays
from engine.cache.layout import Layout, Leaves
from engine.cache.prefix_cache import PrefixCache
from engine.cache.shares import Shares
from engine.cache.snapshot import Snapshot
from engine.errors import attempt
from engine.types import ConversationId, num_chats

log = logging.getLogger(__name__)

# Seconds that a step waits for the writing thread, if there is nothing else to do.
_WAIT_S = 0.02


@dataclass(frozen=True, slots=True)
class Fetched:
    """Tokens and bytes that were read from disk for one request."""

    # Tokens that can be restored now and could not be before. It includes what was read ahead of
    # the request; the other figures do not.
    num_tokens: int = 0
    nbytes: int = 0
    seconds: float = 0.0


NOTHING_FETCHED: Final = Fetched()


@dataclass(slots=True)
class DiskStatistics:
    """Counts since the tier was opened, and sizes now."""

    nbytes: int = 0  # size of the records of this model
    other_bytes: int = 0  # size of the records of all other models
    num_records: int = 0
    num_conversations: int = 0
    written_bytes: int = 0
    written_today_bytes: int = 0
    read_bytes: int = 0
    damaged: int = 0  # records that were refused and removed
    problem: str | None = None


class DiskTier:
    """The records of one model, beside its prefix cache."""

    def __init__(
        self,
        folder: RecordFolder,
        cache: PrefixCache,
        layout: Layout,
        new_caches: Callable[[], list[object]],
        limits: DiskLimits,
        rest_s: float,
    ) -> None:
        """Create a tier.

        Args:
            folder: the records of the model. The caller holds the lock.
            cache: the prefix cache of the model.
            layout: the bytes per token and per snapshot of the model.
            new_caches: function that returns empty caches of the model.
            limits: what the tier may use.
            rest_s: seconds since the last turn of a conversation after which it is written.
        """
        self._folder = folder
        self._index = folder.index
        self._cache = cache
        self._layout = layout
        self.limits = limits
        attributes = [
            frozenset(cast("dict[str, object]", leaf.state)) for leaf in Leaves.of(new_caches()).aux
        ]
        self._reader = RecordReader(folder, layout, attributes)
        self._writer = RecordWriter(folder, limits, time.time, cache.holdings.pinned)
        self.rates = Rates.saved(folder.extra)
        self._saver = PointSaver(folder.namespace, self._index, self._writer, layout, self.rates)
        self._queue = PointQueue(cache, layout, self._index, self.rates, rest_s, time.time)
        self._read = self._damaged = 0
        cache.eviction.save = self._save_evicted

    @property
    def problem(self) -> str | None:
        """One sentence if the tier has switched itself off."""
        return self._writer.problem

    # Restore

    def fetch(self, conversation_id: ConversationId, prompt_ids: Sequence[int]) -> Fetched:
        """Read the state of a prompt into the cache, if that is sooner than feeding its tokens.

        A record that is damaged is removed, and the next best resume point is used.
        """
        start = time.perf_counter()
        held = self._cache.match(conversation_id, prompt_ids).restored
        fetched = 0
        while self.problem is None:
            place = self._best(prompt_ids, held)
            if place is None:
                return NOTHING_FETCHED
            try:
                fetched = self._fetch_place(conversation_id, place)
                break
            except DamagedError as error:
                self._damaged += 1
                log.warning("a record of cached state is removed: %s", error)
                self._writer.remove(error.entry)
        if not fetched:
            return NOTHING_FETCHED
        seconds = time.perf_counter() - start
        self.rates.note_disk(fetched, seconds)
        self._read += fetched
        restored = self._cache.match(conversation_id, prompt_ids).restored
        return Fetched(max(0, restored - held), fetched, seconds)

    def restorable(self, conversation_id: ConversationId, prompt_ids: Sequence[int]) -> int:
        """Return the number of tokens that fetch() would restore from disk. 0: none.

        Nothing is read.
        """
        if self.problem is not None:
            return 0
        held = self._cache.match(conversation_id, prompt_ids).restored
        place = self._best(prompt_ids, held)
        return 0 if place is None else place.num_tokens

    def _best(self, prompt_ids: Sequence[int], held: int) -> PathPosition | None:
        """Return the resume point on disk with the soonest end of prefill; None: use the memory."""
        best, best_s = None, self.rates.seconds(0, len(prompt_ids) - held)
        points = self._index.resume_points(prompt_ids, needs_state=self._layout.needs_snapshot)
        for place in points:
            if place.num_tokens <= held:
                continue
            run = self._index.path_run(place)
            in_memory = stored_end(self._cache.holdings, run)
            # Records are read whole, also where the path leaves them early.
            nbytes = sum(entry.nbytes for entry in self._entries_of(place, in_memory))
            seconds = self.rates.seconds(nbytes, len(prompt_ids) - place.num_tokens)
            if seconds < best_s:
                best, best_s = place, seconds
        return best

    def _fetch_place(self, conversation_id: ConversationId, place: PathPosition) -> int:
        """Read a resume point into the cache. Return the number of bytes read; 0: no room."""
        run = self._index.path_run(place)
        start = stored_end(self._cache.holdings, run)
        entries = self._entries_of(place, start)
        nbytes = sum(entry.nbytes for entry in entries)
        self._writer.finish(entries)
        now = time.time()
        for entry in (*entries, place.entry, *self._index.ancestry(place.entry)):
            entry.last_used = now
        if not self._cache.make_room(nbytes):
            return 0
        # Evicted state may have been written in the place of the records.
        if not all(entry.address in self._index.entries for entry in entries):
            return 0
        # Eviction may have removed a part of the path.
        start = stored_end(self._cache.holdings, run)
        entries = self._entries_of(place, start)
        records = self._reader.read_all(entries)
        spans: list[KvArrays] = []
        position = start
        snapshot: Snapshot | None = None
        for entry, record in zip(entries, records, strict=True):
            if entry.kind is RecordKind.KV:
                end = self._stop_of(place, entry)
                spans.append(self._reader.span(entry, record, position, end))
                position = end
            else:
                snapshot = self._reader.snapshot(entry, record, snapshot)
        if position != run.end:
            raise DamagedError(place.entry, "the records do not reach the resume point")
        self._cache.graft(conversation_id, Graft(run, spans, snapshot))
        self._index.add_users(place, {conversation_id})
        return sum(entry.nbytes for entry in entries)

    def _entries_of(self, place: PathPosition, start: int) -> list[IndexedRecord]:
        """Return the records of a place: K/V after `start` in order, then state, then logits."""
        path: list[IndexedRecord] = []
        stop = place.num_tokens
        for entry in (place.entry, *self._index.ancestry(place.entry)):
            if stop > start:
                path.append(entry)
            stop = entry.start
        return path[::-1] + self._index.points(place)

    def _stop_of(self, place: PathPosition, entry: IndexedRecord) -> int:
        """Return the position up to which a path uses a K/V record: there the next one begins."""
        stop = place.num_tokens
        for one in (place.entry, *self._index.ancestry(place.entry)):
            if one is entry:
                return stop
            stop = one.start
        raise AssertionError

    # Save

    @property
    def has_work(self) -> bool:
        """True if a step would do something."""
        if self.problem is not None:
            return False
        return self._queue.has_due or self._writer.is_busy

    @property
    def work_in_s(self) -> float:
        """Seconds until a step has something to do; infinite if only a turn can bring work."""
        if self.problem is not None:
            return math.inf
        return 0.0 if self._writer.is_busy else self._queue.due_in_s

    def step(self) -> bool:
        """Hand at most one record to the writing thread. Return False if there was no work."""
        if not self.has_work:
            return False
        self._save_one()
        if self.problem is not None:
            self._queue.clear()
        return True

    def _save_one(self) -> None:
        self._writer.collect()
        if self._writer.is_behind:
            self._writer.wait(_WAIT_S)
            return
        for node in self._queue.due():
            if self.problem is None and not node.is_removed and self._saver.save_next(node):
                return
            self._queue.remove(node)
        if self._writer.is_busy:
            self._writer.wait(_WAIT_S)
        elif self._writer.is_index_old:
            self._save_index()

    def _save_evicted(self, node: KvNode) -> None:
        """Hand over what is missing of a resume point that is about to be evicted.

        If too much waits for the writing thread, the state is lost: no request waits for a disk.
        """
        if self.problem is None and not node.is_removed:
            attempt("writing evicted state", partial(self._save_point_of, node))

    def _save_point_of(self, node: KvNode) -> None:
        self._writer.collect()
        if node not in self._queue:
            return
        while self.problem is None and not self._writer.is_behind and self._saver.save_next(node):
            self._writer.collect()
        self._queue.remove(node)

    def save_reading(self, lease: Lease) -> None:
        """Hand over the state of a prompt that is still being read. See PointSaver.save_reading."""
        if self.problem is None:
            self._saver.save_reading(lease)

    def move(self, conversation_id: ConversationId) -> ChatMove:
        """Return the work that writes all resume points of a conversation."""
        return ChatMove(conversation_id, self._cache, self._saver, self._writer)

    def close(self, seconds: float) -> None:
        """Write what is not written yet, as far as it is done in time, and save the index.

        Records that are not written in time are lost. None is damaged.
        """
        deadline = time.monotonic() + seconds
        self._cache.eviction.save = None
        self._queue.end_rest()
        while self.has_work and time.monotonic() < deadline:
            self.step()
        self._queue.clear()
        self._folder.extra |= self.rates.as_json()
        self._writer.close()
        self._reader.close()

    # Removal

    @property
    def namespace(self) -> str:
        return self._folder.namespace

    @property
    def users(self) -> set[ConversationId]:
        """The conversations that use at least one record."""
        return set(map(ConversationId, self._index.users()))

    def forget(self, conversation_id: ConversationId) -> None:
        """Delete the records that no other conversation uses."""
        self._writer.delete(self._index.forget(conversation_id))
        self._queue.clear()
        self._save_index()

    def remove_after(self, token_ids: Sequence[int], num_tokens: int) -> None:
        """Delete the records of a path after num_tokens, because their state is wrong."""
        for place in list(self._index.matches(token_ids)):
            entry = place.entry
            if entry.end > num_tokens and place.num_tokens > num_tokens:
                self._writer.remove(entry)
            else:
                for following in self._index.following(entry):
                    if following.kind is not RecordKind.KV and following.start > num_tokens:
                        self._writer.remove(following)

    # Reports

    def statistics(self) -> DiskStatistics:
        return DiskStatistics(
            nbytes=self._index.stored_bytes,
            other_bytes=self._writer.other_bytes,
            num_records=len(self._index.entries),
            num_conversations=num_chats(map(ConversationId, self._index.users())),
            written_bytes=self._writer.written,
            written_today_bytes=self._writer.daily.nbytes,
            read_bytes=self._read,
            damaged=self._damaged,
            problem=self.problem,
        )

    def shares(self) -> Shares:
        """Return the bytes of each conversation on disk."""
        return shares_on_disk(self._index, needs_state=self._layout.needs_snapshot)

    def _save_index(self) -> None:
        self._folder.extra |= self.rates.as_json()
        self._writer.save_index()
