"""Writing and deleting of records, within the limits of the disk tier. Engine thread only.

Files are written and deleted by one other thread, in order. It gets bytes of evaluated arrays, and
calls no mlx. The engine thread keeps the arrays until the file is written, and frees them.
"""

from __future__ import annotations

import logging
from array import array
from collections.abc import Callable, Iterator, Sequence, Set
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial

from engine.cache.disk.codec import TREE_NOTE, UnsupportedStateError, encode
from engine.cache.disk.daily import DailyBytes
from engine.cache.disk.folder import RecordFolder
from engine.cache.disk.index import POINT_NOTE, USER_NOTE, IndexedRecord, packed
from engine.cache.disk.record import RecordKey, RecordKind, StoredArray, write_record
from engine.cache.disk.run_bytes import feed_bytes
from engine.cache.points import PointKind
from engine.cache.trees import tree_bytes
from engine.types import ConversationId

log = logging.getLogger(__name__)

# Bytes of records that may wait for the writing thread. No more are handed over until it catches
# up.
_WAITING_BYTES = 128 << 20
# Failed writes in a row after which the writer switches itself off.
_MAX_ERRORS = 3
# Writes after which the index is saved again. After a crash, the headers of later records are read.
_SAVE_INDEX_EVERY = 500


@dataclass(frozen=True, slots=True)
class DiskLimits:
    """Upper limits of the tier."""

    budget_bytes: int  # size of all records of all models
    daily_bytes: int  # bytes written on one day, for all models


@dataclass(slots=True)
class _Write:
    """A record on its way to the disk. The tensors are dropped here, on the engine thread."""

    entry: IndexedRecord
    tensors: dict[str, StoredArray]
    nbytes: int
    future: Future[int | OSError] | None = None


class RecordWriter:
    """The writing side of a folder of records. No method raises an error of a file."""

    def __init__(
        self,
        folder: RecordFolder,
        limits: DiskLimits,
        clock: Callable[[], float],
        pinned: Set[str] = frozenset(),
    ) -> None:
        """Create a writer.

        Args:
            folder: the records of the model. The caller holds the lock.
            limits: what may be kept and written.
            clock: function that returns the Unix time.
            pinned: the conversations whose records are deleted last. The caller may change it.
        """
        self._folder = folder
        self._pinned = pinned
        self._index = folder.index
        self.limits = limits
        self._clock = clock
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="disk")
        self._writes: list[_Write] = []
        self._errors = 0
        self._unsaved = 0  # records written or removed since the index was saved
        self.other_bytes = folder.other_bytes()  # size of the records of all other models
        self.daily = DailyBytes(folder.daily_file, clock)
        self.written = 0  # bytes since the writer was created
        self.problem: str | None = None  # one sentence if the writer has switched itself off

    @property
    def is_busy(self) -> bool:
        """True if a record waits for the writing thread, or was written and not collected yet."""
        return bool(self._writes)

    @property
    def is_behind(self) -> bool:
        """True if so much waits for the writing thread that nothing more should be handed over."""
        return sum(write.nbytes for write in self._writes) >= _WAITING_BYTES

    @property
    def is_index_old(self) -> bool:
        return self._unsaved >= _SAVE_INDEX_EVERY

    # Writing

    def write(
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
        entry = IndexedRecord(
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
            is_written=False,
        )
        if not self._index.add(entry):
            return False
        notes = {TREE_NOTE: structure, POINT_NOTE: point.value, USER_NOTE: next(iter(users))}
        write = _Write(entry, tensors, nbytes)
        self._writes.append(write)
        work = partial(write_record, self._folder.path, key, notes, tensors)
        write.future = self._thread.submit(_write_counted, work, self.daily)
        return True

    def _may_write(self, nbytes: int) -> bool:
        coming = nbytes + sum(write.nbytes for write in self._writes)
        if self.daily.nbytes + coming > self.limits.daily_bytes:
            return False
        return self._make_room(nbytes)

    def _make_room(self, nbytes: int) -> bool:
        """Delete the records used longest ago until nbytes fit. Return False if they can't fit."""
        excess = self._index.nbytes + self.other_bytes + nbytes - self.limits.budget_bytes
        try:
            while excess > 0 and self.other_bytes and self._folder.delete_oldest_other():
                before, self.other_bytes = self.other_bytes, self._folder.other_bytes()
                excess -= before - self.other_bytes
        except OSError as error:
            self._note_error(error)
            return False
        if excess > 0 and nbytes > self.limits.budget_bytes:
            return False
        for entry in self._oldest() if excess > 0 else ():
            if entry.is_written and not self._index.following(entry):
                excess -= entry.nbytes
                self.remove(entry)
            if excess <= 0:
                break
        return excess <= 0

    def _oldest(self) -> Iterator[IndexedRecord]:
        """Yield records that were used before now, points before K/V, the oldest first.

        Those of pinned conversations come last.
        """
        now = self._clock()

        def age(entry: IndexedRecord) -> tuple[bool, float, bool, int]:
            is_pinned = not self._pinned.isdisjoint(entry.users)
            return is_pinned, entry.last_used, entry.kind is RecordKind.KV, -entry.start

        older = [entry for entry in self._index.entries.values() if entry.last_used < now]
        yield from sorted(older, key=age)

    def collect(self) -> None:
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
                self.remove(write.entry)
                self._note_error(result)
                continue
            self._errors = 0
            self._index.note_written(write.entry, result)
            self.written += result
            self._unsaved += 1

    def wait(self, seconds: float) -> None:
        """Wait at most this long for the oldest write, and collect."""
        wait([write.future for write in self._writes[:1] if write.future], seconds)
        self.collect()

    def finish(self, entries: Sequence[IndexedRecord]) -> None:
        """Wait until the given records are on disk, if they are still being written."""
        wanted = {id(entry) for entry in entries}
        wait([w.future for w in self._writes if w.future and id(w.entry) in wanted])
        self.collect()

    def close(self) -> None:
        """Finish the record that is being written now, and all deletions. Give up the others."""
        futures = [write.future for write in self._writes if write.future is not None]
        for future in futures:
            future.cancel()
        wait(futures)
        self.collect()  # may give the thread more to do
        self._thread.shutdown(wait=True)
        if self.problem is None:
            _quietly(partial(self._save_packed, self._packed()))

    # Removal

    def remove(self, entry: IndexedRecord) -> None:
        """Delete a record and all records that need it."""
        self.delete(self._index.remove(entry.address))

    def delete(self, removed: Sequence[IndexedRecord]) -> None:
        """Delete the files of records that are no longer in the index."""
        self._unsaved += len(removed)
        if removed:
            self._thread.submit(_quietly, partial(self._folder.delete, removed))

    # Index and errors

    def save_index(self) -> None:
        self._thread.submit(_quietly, partial(self._save_packed, self._packed()))

    def _save_packed(self, data: bytes) -> None:
        self._folder.save_index(data)
        self.daily.add(len(data))

    def _packed(self) -> bytes:
        self._unsaved = 0
        entries = [one for one in self._index.entries.values() if one.is_written]
        return packed(entries, self._folder.extra)

    def _note_error(self, error: OSError) -> None:
        log.warning("cached state could not be written: %s", error)
        self._errors += 1
        if self._errors >= _MAX_ERRORS:
            reason = error.strerror or type(error).__name__
            self._switch_off(f"Cached state is not kept on disk any more: {reason}.")

    def _switch_off(self, problem: str) -> None:
        log.warning("%s", problem)
        self.problem = problem


# Calls on the writing thread. They return errors without tracebacks: a traceback keeps arrays
# alive.


def _write_counted(work: Callable[[], int], daily: DailyBytes) -> int | OSError:
    """Write a record and count its bytes. Return them, or the error. Runs on the writing thread."""
    try:
        nbytes = work()
    except OSError as error:
        return error.with_traceback(None)
    _quietly(partial(daily.add, nbytes))
    return nbytes


def _quietly(work: Callable[[], None]) -> None:
    try:
        work()
    except OSError as error:
        log.warning("the folder of cached state could not be changed: %s", error)
