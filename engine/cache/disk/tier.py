"""Cached state on disk that survives a restart. Engine thread only, except for file work.

The tier stands beside one PrefixCache and its radix tree:

    save    idle work, before eviction, and at the end: resume points of the tree become records
    fetch   before a request: records become nodes of the tree, if that is sooner than feeding tokens

Nothing is written twice: a longer path adds only the K/V of its new tokens. Files are written
and deleted by one other thread, in order. It gets bytes of evaluated arrays, and calls no mlx. The
engine thread keeps the arrays until the file is written, and frees them.

A record that cannot be read is removed, and its tokens are fed again. If the folder cannot be used any
more, the tier switches itself off, and `problem` says why. No method raises an error of a file.
"""

from __future__ import annotations

import logging
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, cast

from engine.cache.disk.codec import TREE_NOTE, UnsupportedStateError, decode, encode
from engine.cache.disk.folder import Folder
from engine.cache.disk.index import POINT_NOTE, USER_NOTE, Entry, Place, packed
from engine.cache.disk.record import (
    MAX_TOKENS,
    Record,
    RecordError,
    RecordKey,
    RecordKind,
    Tensor,
    feed_bytes,
    read_record,
    write_record,
)
from engine.cache.grafting import Graft, stored_end
from engine.cache.hot import KvNode
from engine.cache.kv import KvArrays
from engine.cache.layout import Layout, Leaves
from engine.cache.points import PointKind
from engine.cache.prefix_cache import PrefixCache
from engine.cache.radix import TokenRun, ancestry, path_run
from engine.cache.snapshot import Snapshot
from engine.cache.trees import arrays_in, tree_bytes
from engine.errors import attempt
from engine.types import ConversationId

log = logging.getLogger(__name__)

# Largest K/V of one record, in bytes. Longer spans become several records, so that one step of
# idle work stays short.
_RECORD_BYTES = 32 << 20
# Bytes of records that may wait for the writing thread. No more are handed over until it catches up.
_WAITING_BYTES = 128 << 20
# Seconds that a step waits for the writing thread, if there is nothing else to do.
_WAIT_S = 0.02
# Resume points of one branch that are kept on disk, counted from its end.
_NUM_POINTS = 4
# Ends of prompts of one branch that are kept on disk with their logits. A reply that was cut off has
# such a point at its end too, so that it can be continued.
_NUM_PROMPTS = 2
# Failed writes in a row after which the tier switches itself off.
_MAX_ERRORS = 3
# Writes after which the index is saved again. After a crash, the headers of later records are read.
_SAVE_INDEX_EVERY = 500
# Threads that read and verify records at the same time.
_NUM_READERS = 4
# Weight of the newest measurement in a learned rate.
_ALPHA = 0.3
_DAY_S = 86400


@dataclass(frozen=True, slots=True)
class DiskLimits:
    """Upper limits of the tier."""

    budget_bytes: int  # size of all records of all models
    daily_bytes: int  # bytes written on one day


@dataclass(frozen=True, slots=True)
class Fetched:
    """Tokens and bytes that were read from disk for one request."""

    num_tokens: int = 0  # tokens that can be restored now and could not be before
    nbytes: int = 0
    seconds: float = 0.0


NOTHING_FETCHED: Final = Fetched()


@dataclass(slots=True)
class Rates:
    """Speeds of this machine, learned. They decide if a request reads from disk or feeds tokens."""

    disk_bytes_s: float = 500e6
    tokens_s: float = 500.0

    def note_disk(self, nbytes: int, seconds: float) -> None:
        if nbytes >= 1 << 20 and seconds > 0:
            self.disk_bytes_s += _ALPHA * (nbytes / seconds - self.disk_bytes_s)

    def note_tokens(self, num_tokens: int, seconds: float) -> None:
        if num_tokens >= 64 and seconds > 0:
            self.tokens_s += _ALPHA * (num_tokens / seconds - self.tokens_s)


@dataclass(slots=True)
class _Write:
    """A record on its way to the disk. The tensors are dropped here, on the engine thread."""

    entry: Entry
    tensors: dict[str, Tensor]
    nbytes: int
    future: Future[int | OSError] | None = None


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
        folder: Folder,
        cache: PrefixCache,
        layout: Layout,
        new_caches: Callable[[], list[object]],
        limits: DiskLimits,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Create a tier.

        Args:
            folder: the records of the model. The caller holds the lock.
            cache: the prefix cache of the model.
            layout: the bytes per token and per snapshot of the model.
            new_caches: function that returns empty caches of the model.
            limits: what the tier may use.
            clock: function that returns the Unix time.
        """
        self._folder = folder
        self._index = folder.index
        self._cache = cache
        self._layout = layout
        self.limits = limits
        self._clock = clock
        # The names of the attributes of each auxiliary leaf. A record must have the same.
        self._attributes = [
            frozenset(cast("dict[str, object]", leaf.state)) for leaf in Leaves.of(new_caches()).aux
        ]
        self._lane = ThreadPoolExecutor(1, thread_name_prefix="disk")
        self._readers = ThreadPoolExecutor(_NUM_READERS, thread_name_prefix="disk reader")
        self._writes: list[_Write] = []
        # Resume points that may not be on disk yet, the most valuable one last.
        self._queue: dict[KvNode, None] = {}
        self._seen = -1  # number of publications when the queue was filled
        self._errors = 0
        self._unsaved = 0  # records written or removed since the index was saved
        self._other_bytes = folder.other_bytes()
        self._day, self._written_today = self._saved_day()
        self._written = self._read = self._damaged = 0
        self.rates = self._saved_rates()
        self.problem: str | None = None  # one sentence if the tier has switched itself off
        cache.save_evicted(self._save_evicted)

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
            except _DamagedError as error:
                self._damaged += 1
                log.warning("a record of cached state is removed: %s", error)
                self._remove(error.entry)
        if not fetched:
            return NOTHING_FETCHED
        seconds = time.perf_counter() - start
        self.rates.note_disk(fetched, seconds)
        self._read += fetched
        restored = self._cache.match(conversation_id, prompt_ids).restored
        return Fetched(max(0, restored - held), fetched, seconds)

    def _best(self, prompt_ids: Sequence[int], held: int) -> Place | None:
        """Return the resume point on disk with the soonest end of prefill; None: use the memory."""
        best, best_s = None, (len(prompt_ids) - held) / self.rates.tokens_s
        points = self._index.resume_points(prompt_ids, needs_state=self._layout.needs_snapshot)
        for place in points:
            if place.num_tokens <= held:
                continue
            run = self._index.path_run(place)
            in_memory = stored_end(self._cache.holdings(), run)
            nbytes = (place.num_tokens - in_memory) * self._layout.kv_bytes_per_token
            nbytes += self._layout.snapshot_bytes
            left = len(prompt_ids) - place.num_tokens
            seconds = nbytes / self.rates.disk_bytes_s + left / self.rates.tokens_s
            if seconds < best_s:
                best, best_s = place, seconds
        return best

    def _fetch_place(self, conversation_id: ConversationId, place: Place) -> int:
        """Read a resume point into the cache. Return the number of bytes read; 0: no room."""
        run = self._index.path_run(place)
        start = stored_end(self._cache.holdings(), run)
        entries = self._entries_of(place, start)
        nbytes = sum(entry.nbytes for entry in entries)
        self._finish_writes(entries)
        if not self._cache.make_room(nbytes):
            return 0
        # Eviction may have removed a part of the path.
        start = stored_end(self._cache.holdings(), run)
        entries = self._entries_of(place, start)
        records = self._read_all(entries)
        spans: list[KvArrays] = []
        position = start
        snapshot: Snapshot | None = None
        for entry, record in zip(entries, records, strict=True):
            if entry.kind is RecordKind.KV:
                end = self._stop_of(place, entry)
                spans.append(self._span(entry, record, position, end))
                position = end
            else:
                snapshot = self._snapshot(entry, record, snapshot)
        if position != run.end:
            raise _DamagedError(place.entry, "the records do not reach the resume point")
        self._cache.graft(conversation_id, Graft(run, spans, snapshot))
        now = self._clock()
        self._index.add_users(place, {conversation_id})
        for entry in (*entries, place.entry, *self._index.ancestry(place.entry)):
            entry.last_used = now
        return sum(entry.nbytes for entry in entries)

    def _entries_of(self, place: Place, start: int) -> list[Entry]:
        """Return the records of a place: K/V after `start` in order, then state, then logits."""
        path: list[Entry] = []
        stop = place.num_tokens
        for entry in (place.entry, *self._index.ancestry(place.entry)):
            if stop > start:
                path.append(entry)
            stop = entry.start
        points = [self._index.point(place, kind) for kind in (RecordKind.STATE, RecordKind.LOGITS)]
        return path[::-1] + [point for point in points if point is not None]

    def _stop_of(self, place: Place, entry: Entry) -> int:
        """Return the position up to which a path uses a K/V record: there the next one begins."""
        stop = place.num_tokens
        for one in (place.entry, *self._index.ancestry(place.entry)):
            if one is entry:
                return stop
            stop = one.start
        raise AssertionError

    def _read_all(self, entries: Sequence[Entry]) -> list[Record]:
        tasks = [
            self._readers.submit(_read_verified, self._folder.file(entry), self._folder.namespace)
            for entry in entries
        ]
        records: list[Record] = []
        for entry, task in zip(entries, tasks, strict=True):
            result = task.result()
            if not isinstance(result, Record):
                raise _DamagedError(entry, result)
            if result.header.key != entry.key(self._folder.namespace):
                raise _DamagedError(entry, "its index entry is of another record")
            records.append(result)
        return records

    def _span(self, entry: Entry, record: Record, start: int, end: int) -> KvArrays:
        """Return the K/V of the tokens [start, end) of a record."""
        tree = _decoded(entry, record)
        length = entry.end - entry.start
        fits = (
            len(tree) == self._layout.num_kv
            and tree_bytes(tree) == length * self._layout.kv_bytes_per_token
            and all(x.ndim == 4 and x.shape[-2] == length for x in arrays_in(tree))
        )
        if not fits:
            raise _DamagedError(entry, "its K/V do not fit the model")
        span = KvArrays(length, tree)
        if start > entry.start:
            span = span.split(start - entry.start)[1]
        return span if span.num_tokens == end - start else span.split(end - start)[0]

    def _snapshot(self, entry: Entry, record: Record, known: Snapshot | None) -> Snapshot:
        """Return the snapshot of a state record, or `known` with the logits of a logits record."""
        tree = _decoded(entry, record)
        if entry.kind is RecordKind.LOGITS:
            logits = next(arrays_in(tree), None)
            if logits is None or logits.ndim != 1:
                raise _DamagedError(entry, "its logits do not fit the model")
            states = known.states if known else ()
            return Snapshot(entry.start, entry.point, states, logits)
        tables = [
            cast("dict[str, object]", state) if isinstance(state, dict) else {} for state in tree
        ]
        if [frozenset(table) for table in tables] != self._attributes:
            raise _DamagedError(entry, "its state does not fit the model")
        counts = [table.get("offset") for table in tables]
        if any(isinstance(count, int) and count != entry.start for count in counts):
            raise _DamagedError(entry, "its state is of another position")
        return Snapshot(entry.start, entry.point, tree)

    # Save

    @property
    def has_work(self) -> bool:
        """True if a step would do something."""
        if self.problem is not None:
            return False
        is_new = self._seen != self._cache.counters.publications
        return is_new or bool(self._queue or self._writes)

    def step(self) -> bool:
        """Hand at most one record to the writing thread. Return False if there was nothing to do."""
        if not self.has_work:
            return False
        self._collect()
        if self._is_behind:
            self._wait(_WAIT_S)
            return True
        self._refresh()
        while self._queue and self.problem is None:
            node = next(reversed(self._queue))
            if not node.is_removed and self._save_next(node):
                return True
            self._queue.popitem()
        if self._writes:
            self._wait(_WAIT_S)
        elif self._unsaved >= _SAVE_INDEX_EVERY:
            self._save_index()
        return True

    def _save_evicted(self, node: KvNode) -> None:
        """Hand over what is missing of a resume point that is about to be evicted.

        If too much waits for the writing thread, the state is lost: no request waits for a disk.
        """
        if self.problem is None and not node.is_removed:
            attempt("writing evicted state", partial(self._save_point_of, node))

    def _save_point_of(self, node: KvNode) -> None:
        self._collect()
        self._refresh()
        if node not in self._queue:
            return
        while self.problem is None and not self._is_behind and self._save_next(node):
            self._collect()
        self._queue.pop(node, None)

    @property
    def _is_behind(self) -> bool:
        """True if so much waits for the writing thread that nothing more is handed over."""
        return sum(write.nbytes for write in self._writes) >= _WAITING_BYTES

    def _refresh(self) -> None:
        """Choose the resume points to save again, if new ones were added since."""
        if self._seen != self._cache.counters.publications:
            self._seen = self._cache.counters.publications
            self._queue = self._choose()

    def close(self, seconds: float) -> None:
        """Write what is not written yet, as far as it is done in time, and save the index.

        Records that are not written in time are lost. None is damaged.
        """
        deadline = time.monotonic() + seconds
        self._cache.save_evicted(None)
        while self.has_work and time.monotonic() < deadline:
            self.step()
        # The record that is being written now is finished. The others are given up. Deletions are
        # done.
        for write in self._writes:
            if write.future is not None:
                write.future.cancel()
        self._lane.shutdown(wait=True)
        self._readers.shutdown(wait=True)
        self._collect()
        self._queue.clear()
        if self.problem is None:
            _quietly(partial(self._folder.save_index, self._packed()))

    def _choose(self) -> dict[KvNode, None]:
        """Return the resume points to save, the most valuable one last.

        These are the last ones of each branch, and the ends of shared system prompts. The logits at
        the end of a prompt are saved for the newest prompts of a branch only.
        """
        holdings = self._cache.holdings()
        chosen: dict[KvNode, tuple[int, int, int]] = {}
        for leaf in holdings.tree.nodes():
            if leaf.children:
                continue
            num_points = num_prompts = 0
            for node in ancestry(leaf):
                snapshot = node.snapshot
                if not holdings.is_resume_point(node) or not node.users:
                    continue
                kind = snapshot.kind if snapshot else PointKind.TAIL
                num_prompts += kind is PointKind.PROMPT
                is_last = num_points < _NUM_POINTS and (
                    kind is not PointKind.STRIDE or num_points == 0
                )
                is_old_prompt = kind is PointKind.PROMPT and num_prompts > _NUM_PROMPTS
                if kind is PointKind.SYSTEM or (is_last and not is_old_prompt):
                    rank = (kind is not PointKind.PROMPT, node.last_used, node.end)
                    chosen[node] = max(chosen.get(node, rank), rank)
                    num_points += kind is not PointKind.PROMPT
        return dict.fromkeys(sorted(chosen, key=lambda node: chosen[node]))

    def _save_next(self, node: KvNode) -> bool:
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

    def _save_kv(self, node: KvNode, run: TokenRun, place: Place | None, start: int) -> bool:
        holder = next(above for above in ancestry(node) if above.start <= start)
        per_token = max(1, self._layout.kv_bytes_per_token)
        length = max(1, min(MAX_TOKENS, _RECORD_BYTES // per_token, holder.end - start))
        part = run.part(start, start + length)
        key = self._key(RecordKind.KV, place.entry.address if place else "", part)
        span = holder.span.range(start - holder.start, start - holder.start + length)
        return self._write(key, span, PointKind.TAIL, node.users)

    def _save_point(self, snapshot: Snapshot, place: Place, users: set[ConversationId]) -> bool:
        parent, run = place.entry.address, TokenRun((), (), snapshot.num_tokens)
        has_state = self._index.point(place, RecordKind.STATE) is not None
        if self._layout.needs_snapshot and not has_state:
            key = self._key(RecordKind.STATE, parent, run)
            return self._write(key, snapshot.states, snapshot.kind, users)
        if snapshot.logits is not None and self._index.point(place, RecordKind.LOGITS) is None:
            key = self._key(RecordKind.LOGITS, parent, run)
            return self._write(key, (snapshot.logits,), snapshot.kind, users)
        return False

    def _key(self, kind: RecordKind, parent: str, run: TokenRun) -> RecordKey:
        return RecordKey(self._folder.namespace, kind, parent, run)

    def _write(
        self, key: RecordKey, tree: object, point: PointKind, users: set[ConversationId]
    ) -> bool:
        """Hand a record to the writing thread. Return False if it may not be written."""
        nbytes = tree_bytes(tree) + 28 * len(key.run.token_ids) + 4096
        if not self._may_write(nbytes):
            return False
        try:
            structure, tensors = encode(tree)
        except UnsupportedStateError as error:
            self._switch_off(f"The state of this model can’t be kept on disk: {error}.")
            return False
        entry = Entry(
            address=key.address,
            kind=key.kind,
            parent=key.parent,
            start=key.run.start,
            ids=array("I", key.run.token_ids),
            feeds=feed_bytes(key.run),
            nbytes=nbytes,
            point=point,
            users=set(users),
            last_used=self._clock(),
        )
        if not self._index.add(entry):
            return False
        notes = {TREE_NOTE: structure, POINT_NOTE: point.value, USER_NOTE: next(iter(users))}
        write = _Write(entry, tensors, nbytes)
        self._writes.append(write)
        write.future = self._lane.submit(_write_record, self._folder.path, key, notes, tensors)
        return True

    def _may_write(self, nbytes: int) -> bool:
        today = int(self._clock() // _DAY_S)
        if today != self._day:
            self._day, self._written_today = today, 0
        coming = nbytes + sum(write.nbytes for write in self._writes)
        if self._written_today + coming > self.limits.daily_bytes:
            return False
        return self._make_room(nbytes)

    def _make_room(self, nbytes: int) -> bool:
        """Delete the records used longest ago until nbytes fit. Return False if they can't fit."""
        excess = self._index.nbytes + self._other_bytes + nbytes - self.limits.budget_bytes
        try:
            while excess > 0 and self._other_bytes and self._folder.delete_oldest_other():
                before, self._other_bytes = self._other_bytes, self._folder.other_bytes()
                excess -= before - self._other_bytes
        except OSError as error:
            self._note_error(error)
            return False
        if excess > 0 and nbytes > self.limits.budget_bytes:
            return False
        busy = {id(write.entry) for write in self._writes}
        for entry in self._oldest() if excess > 0 else ():
            if id(entry) not in busy and not self._index.following(entry):
                excess -= entry.nbytes
                self._remove(entry)
            if excess <= 0:
                break
        return excess <= 0

    def _oldest(self) -> Iterator[Entry]:
        """Yield records that were used before now, points before K/V, the oldest first."""
        now = self._clock()

        def age(entry: Entry) -> tuple[float, bool, int]:
            return entry.last_used, entry.kind is RecordKind.KV, -entry.start

        older = [entry for entry in self._index.entries.values() if entry.last_used < now]
        yield from sorted(older, key=age)

    def _collect(self) -> None:
        """Take note of finished writes, and free their arrays."""
        done = [write for write in self._writes if write.future is None or write.future.done()]
        for write in done:
            self._writes.remove(write)
            is_given_up = write.future is None or write.future.cancelled()
            result = 0 if write.future is None or is_given_up else write.future.result()
            write.tensors.clear()
            if is_given_up:
                self._index.remove(write.entry.address)
                continue
            if isinstance(result, OSError):
                self._remove(write.entry)
                self._note_error(result)
                continue
            self._errors = 0
            self._index.resize(write.entry, result)
            self._written += result
            self._written_today += result
            self._unsaved += 1

    def _wait(self, seconds: float) -> None:
        wait([write.future for write in self._writes[:1] if write.future], seconds)
        self._collect()

    def _finish_writes(self, entries: Sequence[Entry]) -> None:
        """Wait until the given records are on disk, if they are still being written."""
        wanted = {id(entry) for entry in entries}
        wait([w.future for w in self._writes if w.future and id(w.entry) in wanted])
        self._collect()

    # Removal

    @property
    def namespace(self) -> str:
        return self._folder.namespace

    def forget(self, conversation_id: ConversationId) -> None:
        """Delete the records that no other conversation uses."""
        self._delete(self._index.forget(conversation_id))
        self._queue.clear()
        self._save_index()

    def remove_after(self, token_ids: Sequence[int], num_tokens: int) -> None:
        """Delete the records of a path after num_tokens, because their state is wrong."""
        for place in list(self._index.matches(token_ids)):
            entry = place.entry
            if entry.end > num_tokens and place.num_tokens > num_tokens:
                self._remove(entry)
            else:
                for following in self._index.following(entry):
                    if following.kind is not RecordKind.KV and following.start > num_tokens:
                        self._remove(following)

    def _remove(self, entry: Entry) -> None:
        self._delete(self._index.remove(entry.address))

    def _delete(self, removed: Sequence[Entry]) -> None:
        self._unsaved += len(removed)
        if removed:
            self._lane.submit(_quietly, partial(self._folder.delete, removed))

    # Index, rates and errors

    def statistics(self) -> DiskStatistics:
        return DiskStatistics(
            nbytes=self._index.nbytes,
            other_bytes=self._other_bytes,
            num_records=len(self._index.entries),
            num_conversations=len(self._index.users()),
            written_bytes=self._written,
            written_today_bytes=self._written_today,
            read_bytes=self._read,
            damaged=self._damaged,
            problem=self.problem,
        )

    def _save_index(self) -> None:
        self._lane.submit(_quietly, partial(self._folder.save_index, self._packed()))

    def _packed(self) -> bytes:
        self._unsaved = 0
        busy = {id(write.entry) for write in self._writes}
        entries = [one for one in self._index.entries.values() if id(one) not in busy]
        extra: dict[str, object] = {
            "day": [self._day, self._written_today],
            "rates": [self.rates.disk_bytes_s, self.rates.tokens_s],
        }
        return packed(entries, extra)

    def _saved_day(self) -> tuple[int, int]:
        today = int(self._clock() // _DAY_S)
        match self._folder.extra.get("day"):
            case [int(day), int(written)] if day == today and written >= 0:
                return day, written
            case _:
                return today, 0

    def _saved_rates(self) -> Rates:
        match self._folder.extra.get("rates"):
            case [float(disk), float(tokens)] if disk > 0 and tokens > 0:
                return Rates(disk, tokens)
            case _:
                return Rates()

    def _note_error(self, error: OSError) -> None:
        log.warning("cached state could not be written: %s", error)
        self._errors += 1
        if self._errors >= _MAX_ERRORS:
            reason = error.strerror or type(error).__name__
            self._switch_off(f"Cached state is not kept on disk any more: {reason}.")

    def _switch_off(self, problem: str) -> None:
        log.warning("%s", problem)
        self.problem = problem
        self._queue.clear()


class _DamagedError(Exception):
    """A record cannot be used."""

    def __init__(self, entry: Entry, reason: str) -> None:
        super().__init__(reason)
        self.entry = entry


def _decoded(entry: Entry, record: Record) -> tuple[object, ...]:
    """Return the tree of a record, which is a tuple: of K/V leaves, of states, or of logits."""
    try:
        tree = decode(record)
    except RecordError as error:
        raise _DamagedError(entry, str(error)) from error
    if not isinstance(tree, tuple):
        raise _DamagedError(entry, "its content has another structure")
    return cast("tuple[object, ...]", tree)


# Calls on other threads. They return errors without tracebacks: a traceback would keep arrays alive.


def _read_verified(path: Path, namespace: str) -> Record | str:
    try:
        return read_record(path, namespace)
    except (RecordError, OSError, MemoryError) as error:
        return str(error)


def _write_record(
    folder: Path, key: RecordKey, notes: dict[str, str], tensors: dict[str, Tensor]
) -> int | OSError:
    try:
        return write_record(folder, key, notes, tensors)
    except OSError as error:
        return error.with_traceback(None)


def _quietly(work: Callable[[], None]) -> None:
    try:
        work()
    except OSError as error:
        log.warning("the folder of cached state could not be changed: %s", error)
