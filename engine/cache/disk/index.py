"""The index of records: which states of which paths are on disk. Pure Python, without mlx.

K/V records form a tree. A record follows its parent at any position inside the parent or at its
end, because a conversation may branch inside the tokens of one record:

    record A   tokens [0, 100)
    record B   tokens [60, 80), parent A: a branch from token 60 on

State and logits records (points) belong to the K/V record that contains their last token.

A saved index is a copy of the headers of all records, in one file that loads fast. It is not
needed: without it, the headers are read from the records. It also holds what may change while a
record stays the same: which conversations use it, and when it was last used.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

from engine.cache.disk.record import Header, RecordError, RecordKey, RecordKind
from engine.cache.disk.run_bytes import feed_bytes, run_of
from engine.cache.feeding import Feed, add_feeds
from engine.cache.points import PointKind
from engine.cache.radix import TokenRun, common_end
from engine.sequences import common_prefix_len
from engine.types import is_of

_MAGIC = b"rejoinder-index-1\n"
# Key of the notes of a record: the kind of its resume point, and the conversation that wrote it.
POINT_NOTE, USER_NOTE = "point", "conversation"


@dataclass(slots=True, eq=False)
class IndexedRecord:
    """One record: what its header says, and how it is used."""

    address: str
    kind: RecordKind
    parent: str  # address of the K/V record before it; "" for the first one of a path
    start: int  # position of the first token of a K/V record, or of a point
    ids: array[int]  # token ids of a K/V record
    feeds: bytes  # forward passes that computed the tokens, as feed_bytes
    nbytes: int
    point: PointKind = PointKind.TAIL  # kind of the resume point, for a state or logits record
    # Conversations that use the whole record. Others may branch inside it.
    users: set[str] = field(default_factory=set[str])
    last_used: float = 0.0  # Unix time
    is_written: bool = True  # False while the record waits for the writing thread, or is written

    @property
    def stored_bytes(self) -> int:
        """Bytes of the record on disk: none before it is written."""
        return self.nbytes if self.is_written else 0

    @property
    def end(self) -> int:
        return self.start + len(self.ids)

    @property
    def run(self) -> TokenRun:
        """The tokens of a K/V record, with the forward passes that computed them."""
        return run_of(self.ids.tobytes(), self.feeds, self.start)

    def key(self, namespace: str) -> RecordKey:
        return RecordKey(namespace, self.kind, self.parent, self.run)


def entry_of(header: Header, address: str, *, last_used: float) -> IndexedRecord:
    """Return the entry of a record that the index does not know."""
    key, notes = header.key, header.notes
    point = notes.get(POINT_NOTE)
    return IndexedRecord(
        address=address,
        kind=key.kind,
        parent=key.parent,
        start=key.run.start,
        ids=array("I", key.run.token_ids),
        feeds=feed_bytes(key.run),
        nbytes=header.nbytes,
        point=PointKind(point) if point in set(PointKind) else PointKind.TAIL,
        users={notes[USER_NOTE]} if USER_NOTE in notes else set(),
        last_used=last_used,
    )


@dataclass(frozen=True, slots=True)
class PathPosition:
    """A position on a path: after token `num_tokens`, inside or at the end of a K/V record."""

    entry: IndexedRecord
    num_tokens: int


class Index:
    """All known records of one namespace."""

    def __init__(self) -> None:
        self.entries: dict[str, IndexedRecord] = {}
        self.nbytes = 0  # size of all records, also of those that are not written yet
        # K/V records by parent, position in the parent's path, and first token.
        self._below: dict[str, dict[int, dict[int, list[IndexedRecord]]]] = {}
        # State and logits records by parent, position and kind.
        self._points: dict[str, dict[int, dict[RecordKind, IndexedRecord]]] = {}

    def add(self, entry: IndexedRecord) -> bool:
        """Add a record. Return False if it is known already or does not follow a known record."""
        if entry.address in self.entries or not self._follows(entry):
            return False
        if entry.kind is RecordKind.KV:
            starts = self._below.setdefault(entry.parent, {})
            starts.setdefault(entry.start, {}).setdefault(entry.ids[0], []).append(entry)
        else:
            at = self._points.setdefault(entry.parent, {}).setdefault(entry.start, {})
            if entry.kind in at:
                return False
            at[entry.kind] = entry
        self.entries[entry.address] = entry
        self.nbytes += entry.nbytes
        self.add_users(PathPosition(entry, entry.end), entry.users)
        return True

    def add_users(self, place: PathPosition, users: set[str]) -> None:
        """Record that conversations use a path: all of its records that lie on it completely."""
        stop = place.num_tokens
        for entry in (place.entry, *self.ancestry(place.entry)):
            if stop == entry.end:
                entry.users |= users
            stop = entry.start

    def users(self) -> set[str]:
        """Return the conversations that use at least one record."""
        return set[str]().union(*(entry.users for entry in self.entries.values()))

    def forget(self, user: str) -> list[IndexedRecord]:
        """Remove the records that hold text of one conversation only. Return the removed entries.

        See is_of on several answers and documents of folders.
        If another conversation needs only the beginning of such a record, it loses this record and
        what follows: text that was forgotten must not stay.
        """
        for entry in self.entries.values():
            entry.users -= {one for one in entry.users if is_of(one, user)}
        removed: list[IndexedRecord] = []
        # A point has no text of its own. It goes with the K/V record that it belongs to.
        unused = [
            entry
            for entry in self.entries.values()
            if entry.kind is RecordKind.KV and not entry.users
        ]
        for entry in unused:
            removed.extend(self.remove(entry.address))
        return removed

    def add_all(self, entries: Sequence[IndexedRecord]) -> list[IndexedRecord]:
        """Add records in any order. Return those that cannot be used: a record above is missing."""
        waiting: dict[str, list[IndexedRecord]] = {}
        for entry in entries:
            waiting.setdefault(entry.parent, []).append(entry)
        ready = waiting.pop("", [])
        unusable: list[IndexedRecord] = []
        while ready:
            entry = ready.pop()
            if self.add(entry):
                ready.extend(waiting.pop(entry.address, []))
            else:
                unusable.append(entry)
        return unusable + [entry for group in waiting.values() for entry in group]

    def remove(self, address: str) -> list[IndexedRecord]:
        """Remove a record and all records that need it. Return the removed entries."""
        pending = [self.entries[address]] if address in self.entries else []
        removed: list[IndexedRecord] = []
        while pending:
            entry = pending.pop()
            removed.append(entry)
            pending.extend(self.following(entry))
            self._below.pop(entry.address, None)
            self._points.pop(entry.address, None)
        for entry in removed:
            self._unlink(entry)
        return removed

    @property
    def stored_bytes(self) -> int:
        """Size of the records that are written."""
        return sum(entry.stored_bytes for entry in self.entries.values())

    def note_written(self, entry: IndexedRecord, nbytes: int) -> None:
        """Note that a record is on disk, and correct its size, which was estimated before."""
        entry.is_written = True
        if self.entries.get(entry.address) is entry:
            self.nbytes += nbytes - entry.nbytes
            entry.nbytes = nbytes

    def following(self, entry: IndexedRecord) -> list[IndexedRecord]:
        """Return the records whose parent is this one."""
        below = self._below.get(entry.address, {})
        points = self._points.get(entry.address, {})
        kv = [one for firsts in below.values() for group in firsts.values() for one in group]
        return kv + [one for kinds in points.values() for one in kinds.values()]

    def ancestry(self, entry: IndexedRecord) -> Iterator[IndexedRecord]:
        """Yield the K/V records above a record, the nearest one first."""
        while entry.parent:
            entry = self.entries[entry.parent]
            yield entry

    def point(self, place: PathPosition, kind: RecordKind) -> IndexedRecord | None:
        """Return the state or logits record at a place."""
        at = self._points.get(place.entry.address, {}).get(place.num_tokens, {})
        return at.get(kind)

    def points(self, place: PathPosition) -> list[IndexedRecord]:
        """Return the records of a resume point: its state, then its logits."""
        found = [self.point(place, kind) for kind in (RecordKind.STATE, RecordKind.LOGITS)]
        return [point for point in found if point is not None]

    def longest_path(self, user: str) -> list[IndexedRecord]:
        """Return the longest path of a conversation: its K/V records in order, then its points.

        Empty if there is none.
        """
        own = [one for one in self.entries.values() if user in one.users]
        last = max((one for one in own if one.ids), key=lambda one: one.end, default=None)
        if last is None:
            return []
        points = self.points(PathPosition(last, last.end))
        return [*reversed(list(self.ancestry(last))), last, *points]

    def path_run(self, place: PathPosition) -> TokenRun:
        """Return all tokens from token 0 to a place, with the passes that computed them."""
        parts: list[TokenRun] = []
        stop = place.num_tokens
        for entry in (place.entry, *self.ancestry(place.entry)):
            parts.append(entry.run.part(entry.start, stop))
            stop = entry.start
        token_ids = [token for part in reversed(parts) for token in part.token_ids]
        feeds: list[Feed] = []
        for part in reversed(parts):
            add_feeds(feeds, part.feeds)
        return TokenRun(tuple(token_ids), tuple(feeds))

    def matches(self, prompt_ids: Sequence[int]) -> Iterator[PathPosition]:
        """Yield the end of each K/V record, or of its part, that lies on the path of a prompt."""
        pending = self._starting("", 0, prompt_ids)
        while pending:
            entry = pending.pop()
            end = entry.start + common_prefix_len(entry.ids, prompt_ids, entry.start)
            yield PathPosition(entry, end)
            pending.extend(self._starting(entry.address, end, prompt_ids))

    def resume_points(
        self, prompt_ids: Sequence[int], *, needs_state: bool
    ) -> Iterator[PathPosition]:
        """Yield the places on the path of a prompt at which a request can resume.

        At least one token of the prompt is left to feed, unless the logits after it are stored.

        needs_state: True if K/V alone cannot restore the model's state.
        """
        last = len(prompt_ids) - 1
        for place in self.matches(prompt_ids):
            for position, kinds in self._points.get(place.entry.address, {}).items():
                has_state = RecordKind.STATE in kinds or not needs_state
                is_early = position <= last
                is_whole = position == last + 1 and RecordKind.LOGITS in kinds
                if position <= place.num_tokens and has_state and (is_early or is_whole):
                    yield PathPosition(place.entry, position)
            if not needs_state and place.entry.start < last:
                yield PathPosition(place.entry, min(place.num_tokens, last))

    def covered(self, run: TokenRun) -> PathPosition | None:
        """Return the deepest place that agrees with a run from token 0, in tokens and passes."""
        best: PathPosition | None = None
        pending = self._starting("", 0, run.token_ids)
        while pending:
            entry = pending.pop()
            end = common_end(entry.run, run)
            if end > entry.start:
                if best is None or end > best.num_tokens:
                    best = PathPosition(entry, end)
                pending.extend(self._starting(entry.address, end, run.token_ids))
        return best

    def _starting(self, parent: str, end: int, token_ids: Sequence[int]) -> list[IndexedRecord]:
        """Return the K/V records that follow a record at or before `end` with the right token."""
        return [
            entry
            for start, firsts in self._below.get(parent, {}).items()
            if start <= end and start < len(token_ids)
            for entry in firsts.get(token_ids[start], ())
        ]

    def _follows(self, entry: IndexedRecord) -> bool:
        """Return True if a record fits the record that it names as its parent."""
        if entry.kind is RecordKind.KV and not entry.ids:
            return False
        if not entry.parent:
            return entry.kind is RecordKind.KV and entry.start == 0
        above = self.entries.get(entry.parent)
        is_inside = above is not None and above.start < entry.start <= above.end
        return is_inside and above is not None and above.kind is RecordKind.KV

    def _unlink(self, entry: IndexedRecord) -> None:
        del self.entries[entry.address]
        self.nbytes -= entry.nbytes
        if entry.kind is not RecordKind.KV:
            self._points.get(entry.parent, {}).get(entry.start, {}).pop(entry.kind, None)
            return
        group = self._below.get(entry.parent, {}).get(entry.start, {}).get(entry.ids[0], [])
        if entry in group:
            group.remove(entry)


def packed(entries: Sequence[IndexedRecord], extra: dict[str, object]) -> bytes:
    """Return a saved index.

    extra: further values to save, as JSON.
    """
    rows = [
        [
            entry.address, entry.kind.value, entry.parent, entry.start, len(entry.ids),
            len(entry.feeds), entry.nbytes, entry.point.value, sorted(entry.users),
            entry.last_used,
        ]
        for entry in entries
    ]  # fmt: skip
    table = json.dumps({"rows": rows, "extra": extra}).encode()
    blobs = [part for entry in entries for part in (entry.ids.tobytes(), entry.feeds)]
    body = b"".join([len(table).to_bytes(8, "little"), table, *blobs])
    return _MAGIC + hashlib.sha256(body).digest() + body


def unpacked(data: bytes) -> tuple[list[IndexedRecord], dict[str, object]]:
    """Return the entries and the extra values of a saved index.

    Raises:
        RecordError: the data are not a saved index, or are damaged.
    """
    start = len(_MAGIC) + 32
    body = memoryview(data)[start:]
    if data[: len(_MAGIC)] != _MAGIC or hashlib.sha256(body).digest() != data[len(_MAGIC) : start]:
        raise RecordError("the index is damaged")
    length = int.from_bytes(body[:8], "little")
    try:
        table = cast("dict[str, object]", json.loads(bytes(body[8 : 8 + length])))
        entries: list[IndexedRecord] = []
        place = 8 + length
        for row in cast("list[list[object]]", table["rows"]):
            entry, place = _entry(row, body, place)
            entries.append(entry)
        return entries, cast("dict[str, object]", table["extra"])
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise RecordError("the index is damaged") from error


def _entry(row: list[object], body: memoryview, place: int) -> tuple[IndexedRecord, int]:
    (address, kind, parent, start, num_ids, feed_len, nbytes, point, users, last_used) = row
    ids = array("I")
    middle = place + 4 * cast("int", num_ids)
    ids.frombytes(body[place:middle])
    end = middle + cast("int", feed_len)
    entry = IndexedRecord(
        address=cast("str", address),
        kind=RecordKind(cast("str", kind)),
        parent=cast("str", parent),
        start=cast("int", start),
        ids=ids,
        feeds=bytes(body[middle:end]),
        nbytes=cast("int", nbytes),
        point=PointKind(cast("str", point)),
        users=set(cast("list[str]", users)),
        last_used=cast("float", last_used),
    )
    return entry, end
