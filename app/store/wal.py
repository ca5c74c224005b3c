"""The write-ahead log of a database, read without SQLite (https://sqlite.org/fileformat2.html).

SQLite uses the frames of a log up to the first one whose checksum is wrong, and ignores the commits
behind it without an error. The checksum of a frame also covers all frames before it. `Log`
therefore checks each frame against the stored checksum of its predecessor: frames behind a damaged
one are found, and its loss is known. The index of the log (-shm), which survives a kill, has the
number of the last committed frame, so a log that was cut off is found too.
"""

from __future__ import annotations

import struct
import sys
from dataclasses import dataclass
from pathlib import Path

_MAGIC = 0x377F0682  # the last bit is set if the words of checksums are big-endian
_HEADER, _FRAME_HEADER = 32, 24
_INDEX_HEADER = 48
_MASK = 0xFFFFFFFF
Sums = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Frame:
    """A frame of the present round of the log."""

    number: int  # 1 for the first frame
    page: int
    pages_after: int  # size of the database in pages if the frame ends a commit, else 0
    data: bytes
    is_whole: bool  # True if its checksum is right


@dataclass(frozen=True, slots=True)
class _Index:
    """The header of the index of the log."""

    salts: bytes
    last_frame: int  # last committed frame
    num_copied: int  # the first frames, which a checkpoint has written into the database


class Log:
    """The log of a database that no connection uses."""

    def __init__(self, database: Path) -> None:
        index = _read_index(Path(f"{database}-shm"))
        content = _read(Path(f"{database}-wal"))
        self._has_header = len(content) >= _HEADER and _has_header(content)
        self._has_content = len(content) > _HEADER
        salts = content[16:24] if self._has_header else content[_HEADER + 8 : _HEADER + 16]
        self._frames = _frames(content, salts) if self._has_content else []
        self._expected = 0  # last committed frame, as the index states it
        self._num_copied = 0
        if index is not None and index.last_frame > index.num_copied:
            self._expected = index.last_frame
            if index.salts == salts:
                self._num_copied = index.num_copied

    @property
    def is_damaged(self) -> bool:
        """True if SQLite would ignore commits of the log."""
        accepted = 0
        for number, frame in enumerate(self._frames, start=1):
            if not (self._has_header and frame.is_whole and frame.number == number):
                break
            if frame.pages_after:
                accepted = number
        has_header = self._has_header or not self._has_content
        return not has_header or accepted < max(self._expected, self._last_commit)

    @property
    def is_complete(self) -> bool:
        """True if no committed page is lost: the damaged frames are in the database already."""
        whole = {frame.number for frame in self._frames if frame.is_whole}
        last = max(self._expected, self._last_commit)
        return whole.issuperset(range(self._num_copied + 1, last + 1))

    @property
    def pages(self) -> dict[int, bytes]:
        """The newest pages of the committed changes, as far as their frames are whole."""
        committed: dict[int, bytes] = {}
        pages: dict[int, bytes] = {}
        for frame in self._frames:
            if frame.is_whole and frame.number > self._num_copied:
                pages[frame.page] = frame.data
                if frame.pages_after:
                    committed.update(pages)
                    pages.clear()
        return committed

    @property
    def _last_commit(self) -> int:
        """The last frame that ends a commit and is whole."""
        commits = (frame.number for frame in self._frames if frame.pages_after and frame.is_whole)
        return max(commits, default=0)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _has_header(content: bytes) -> bool:
    (magic,) = struct.unpack_from(">I", content)
    if magic & ~1 != _MAGIC:
        return False
    return _sums(content[:24], (0, 0), _order(content)) == struct.unpack_from(">II", content, 24)


def _order(content: bytes) -> str:
    """Return the byte order of the words of checksums."""
    return ">" if content[3] & 1 else "<"


def _frames(content: bytes, salts: bytes) -> list[_Frame]:
    """Return the frames of the present round, which has these salts."""
    (page_size,) = struct.unpack_from(">I", content, 8)
    if not 512 <= page_size <= 65536 or page_size & (page_size - 1):
        page_size = 4096  # the header is damaged
    frames: list[_Frame] = []
    before = struct.unpack_from(">II", content, 24)
    step = _FRAME_HEADER + page_size
    for number, at in enumerate(range(_HEADER, len(content) - step + 1, step), start=1):
        page, pages_after = struct.unpack_from(">II", content, at)
        stored = struct.unpack_from(">II", content, at + 16)
        data = content[at + _FRAME_HEADER : at + step]
        if content[at + 8 : at + 16] == salts:
            found = _sums(content[at : at + 8], before, _order(content))
            found = _sums(data, found, _order(content))
            frames.append(_Frame(number, page, pages_after, data, found == stored))
        before = stored
    return frames


def _sums(data: bytes, before: Sums, order: str) -> Sums:
    """Return the checksum of SQLite's log: two sums over words of four bytes."""
    first, second = before
    # 0.1 ms for a page: a log of 1,000 pages takes 0.1 s, at a start that follows a kill.
    words = iter(struct.unpack(f"{order}{len(data) // 4}I", data))
    for word in words:
        first = (first + word + second) & _MASK
        second = (second + next(words) + first) & _MASK
    return first, second


def _read_index(path: Path) -> _Index | None:
    """Return the header of an index of the log, or None if it is damaged or missing."""
    content = _read(path)
    header = content[:_INDEX_HEADER]
    if len(content) < 2 * _INDEX_HEADER + 4 or header != content[_INDEX_HEADER : 2 * _INDEX_HEADER]:
        return None
    order = "<" if sys.byteorder == "little" else ">"
    if _sums(header[:40], (0, 0), order) != struct.unpack_from("=II", header, 40) or not header[12]:
        return None
    (last_frame,) = struct.unpack_from("=I", header, 16)
    (num_copied,) = struct.unpack_from("=I", content, 2 * _INDEX_HEADER)
    return _Index(header[32:40], last_frame, num_copied)
