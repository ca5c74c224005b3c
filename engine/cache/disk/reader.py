"""Reading of records into K/V and snapshots of a model. Engine thread, except for file reads."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

from engine.cache.disk.codec import decode
from engine.cache.disk.folder import RecordFolder
from engine.cache.disk.index import IndexedRecord
from engine.cache.disk.record import Record, RecordError, RecordKind, read_record
from engine.cache.kv import KvArrays
from engine.cache.layout import Layout
from engine.cache.snapshot import Snapshot
from engine.cache.trees import arrays_in, tree_bytes

# Threads that read and verify records at the same time.
_NUM_READERS = 4


class DamagedError(Exception):
    """A record cannot be used."""

    def __init__(self, entry: IndexedRecord, reason: str) -> None:
        super().__init__(reason)
        self.entry = entry


class RecordReader:
    """Reads records of one model. What does not fit the model raises DamagedError."""

    def __init__(
        self, folder: RecordFolder, layout: Layout, attributes: Sequence[frozenset[str]]
    ) -> None:
        """Create a reader.

        Args:
            folder: the records of the model.
            layout: the bytes per token and per snapshot of the model.
            attributes: names of the attributes of each auxiliary leaf. A state must have the same.
        """
        self._folder = folder
        self._layout = layout
        self._attributes = list(attributes)
        self._threads = ThreadPoolExecutor(_NUM_READERS, thread_name_prefix="disk reader")

    def close(self) -> None:
        self._threads.shutdown(wait=True)

    def read_all(self, entries: Sequence[IndexedRecord]) -> list[Record]:
        """Read and verify records, several at a time.

        Raises:
            DamagedError: a record is damaged, or is not what the index says.
        """
        tasks = [
            self._threads.submit(_read_verified, self._folder.file(entry), self._folder.namespace)
            for entry in entries
        ]
        records: list[Record] = []
        for entry, task in zip(entries, tasks, strict=True):
            result = task.result()
            if not isinstance(result, Record):
                raise DamagedError(entry, result)
            if result.header.key != entry.key(self._folder.namespace):
                raise DamagedError(entry, "its index entry is of another record")
            records.append(result)
        return records

    def span(self, entry: IndexedRecord, record: Record, start: int, end: int) -> KvArrays:
        """Return the K/V of the tokens [start, end) of a record."""
        tree = _decoded(entry, record)
        length = entry.end - entry.start
        fits = (
            len(tree) == self._layout.num_kv
            and tree_bytes(tree) == length * self._layout.kv_bytes_per_token
            and all(x.ndim == 4 and x.shape[-2] == length for x in arrays_in(tree))
        )
        if not fits:
            raise DamagedError(entry, "its K/V do not fit the model")
        span = KvArrays(length, tree)
        if start > entry.start:
            span = span.split(start - entry.start)[1]
        return span if span.num_tokens == end - start else span.split(end - start)[0]

    def snapshot(self, entry: IndexedRecord, record: Record, known: Snapshot | None) -> Snapshot:
        """Return the snapshot of a state record, or `known` with the logits of a logits record."""
        tree = _decoded(entry, record)
        if entry.kind is RecordKind.LOGITS:
            logits = next(arrays_in(tree), None)
            if logits is None or logits.ndim != 1:
                raise DamagedError(entry, "its logits do not fit the model")
            states = known.states if known else ()
            return Snapshot(entry.start, entry.point, states, logits)
        tables = [
            cast("dict[str, object]", state) if isinstance(state, dict) else {} for state in tree
        ]
        if [frozenset(table) for table in tables] != self._attributes:
            raise DamagedError(entry, "its state does not fit the model")
        counts = [table.get("offset") for table in tables]
        if any(isinstance(count, int) and count != entry.start for count in counts):
            raise DamagedError(entry, "its state is of another position")
        return Snapshot(entry.start, entry.point, tree)


def _decoded(entry: IndexedRecord, record: Record) -> tuple[object, ...]:
    """Return the tree of a record, which is a tuple: of K/V leaves, of states, or of logits."""
    try:
        tree = decode(record)
    except RecordError as error:
        raise DamagedError(entry, str(error)) from error
    if not isinstance(tree, tuple):
        raise DamagedError(entry, "its content has another structure")
    return cast("tuple[object, ...]", tree)


# Called on other threads. It returns errors without tracebacks: a traceback keeps arrays alive.
def _read_verified(path: Path, namespace: str) -> Record | str:
    try:
        return read_record(path, namespace)
    except (RecordError, OSError, MemoryError) as error:
        return str(error)
