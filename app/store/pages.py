"""The rows of a database file that SQLite cannot read, found page by page.

SQLite reaches a page of rows through the pages above it. If one of those is damaged, all rows below
it are unreachable, although their own pages are whole. `FileImage.rows` therefore reads every page
of rows by itself, in the file format of SQLite (https://sqlite.org/fileformat2.html). A page does
not name its table. The caller tells tables apart by their numbers of columns.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from pathlib import Path

from app.store.schema import Value
from app.store.wal import Log

Row = tuple[int, tuple[Value, ...]]  # number of the row, values of its columns

_DEFAULT_PAGE = 4096
_PAGE_SIZES = tuple(1 << bits for bits in range(9, 16))
_FILE_HEADER = 100  # bytes before the header of the first page
_FORMATS_AT, _WITHOUT_LOG = 18, b"\1\1"  # in the header of the file
_PAGE_HEADER = 8
_LEAF = 0x0D  # type of a page that holds rows of a table
# Sizes in bytes of the serial types 0 to 9: NULL, six lengths of integers, float, 0 and 1.
_SIZES = (0, 1, 2, 3, 4, 6, 8, 8, 0, 0)
_FLOAT, _ZERO, _ONE = 7, 8, 9
_FIRST_BLOB = 12  # serial types from here on are blobs (even) and texts (odd)
_VARINT = 9  # longest variable-length integer
_DAMAGE = (ValueError, IndexError, struct.error)


class FileImage:
    """Pages of a database file, with newer ones of its write-ahead log. The file may be damaged."""

    def __init__(self, path: Path) -> None:
        """Map the file.

        Raises:
            OSError: the file cannot be read.
            ValueError: the file is empty.
        """
        with path.open("rb") as file:
            self._file = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        stated = int.from_bytes(self._file[16:18], "big")
        self._page_size = stated if stated in _PAGE_SIZES else _DEFAULT_PAGE
        self._newer = Log(path).pages
        in_file = -(-len(self._file) // self._page_size)
        self._num_pages = max([in_file, *self._newer])

    def close(self) -> None:
        self._file.close()

    def write_to(self, path: Path) -> None:
        """Write the pages into a new file, as a database without a log."""
        with path.open("wb") as file:
            for number in range(1, self._num_pages + 1):
                file.write(self._page(number).ljust(self._page_size, b"\0"))
            file.seek(_FORMATS_AT)
            file.write(_WITHOUT_LOG)

    def rows(self, *, fewest_columns: int) -> Iterator[Row]:
        """Yield the rows of all tables that have at least some number of columns.

        A row is left out if its lengths contradict each other, or if a page that it continues on
        is missing. Pages that SQLite has marked as unused hold deleted rows, and are left out.
        """
        unused = self._unused_pages()
        for number in range(1, self._num_pages + 1):
            page = self._page(number)
            start = _FILE_HEADER if number == 1 else 0
            if number in unused or len(page) < self._page_size or page[start] != _LEAF:
                continue
            (num_cells,) = struct.unpack_from(">H", page, start + 3)
            for at in range(num_cells):
                try:
                    (offset,) = struct.unpack_from(">H", page, start + _PAGE_HEADER + 2 * at)
                    row = self._row(page, offset, fewest_columns)
                except _DAMAGE:
                    continue
                if row is not None:
                    yield row

    def _page(self, number: int) -> bytes:
        newer = self._newer.get(number)
        if newer is not None:
            return newer
        start = (number - 1) * self._page_size
        return self._file[start : start + self._page_size]

    def _unused_pages(self) -> set[int]:
        """Return the numbers of the unused pages, as far as their list can be read."""
        unused: set[int] = set()
        trunk = int.from_bytes(self._page(1)[32:36], "big")
        while 0 < trunk <= self._num_pages and trunk not in unused:
            unused.add(trunk)
            page = self._page(trunk)
            if len(page) < self._page_size:
                break
            trunk, count = struct.unpack_from(">II", page, 0)
            count = min(count, self._page_size // 4 - 2)
            unused.update(struct.unpack_from(f">{count}I", page, 8))
        return unused

    def _row(self, page: bytes, offset: int, fewest_columns: int) -> Row | None:
        """Return the row of a cell, or None if it has too few columns.

        Raises:
            ValueError, IndexError, struct.error: the cell is damaged.
        """
        size, at = _varint(page, offset)
        number, at = _varint(page, at)
        local = self._local_size(size)
        payload = page[at : at + local]
        if len(payload) < local:
            raise ValueError("the row crosses the end of its page")
        header_size, at_types = _varint(payload, 0)
        if header_size - at_types < fewest_columns:
            return None
        if size > local:
            (following,) = struct.unpack_from(">I", page, at + local)
            payload += self._overflow(following, size - local)
        types: list[int] = []
        while at_types < header_size:
            kind, at_types = _varint(payload, at_types)
            types.append(kind)
        if header_size + sum(map(_size_of, types)) != size:
            raise ValueError("the lengths do not fit")
        return (
            (number, _values(payload, header_size, types)) if len(types) >= fewest_columns else None
        )

    def _local_size(self, size: int) -> int:
        """Return how many bytes of a row are on its own page. The rest is on overflow pages."""
        usable = self._page_size
        if size <= usable - 35:
            return size
        least = (usable - 12) * 32 // 255 - 23
        local = least + (size - least) % (usable - 4)
        return local if local <= usable - 35 else least

    def _overflow(self, number: int, size: int) -> bytes:
        if size > len(self._file) + len(self._newer) * self._page_size:
            raise ValueError("the row is longer than the file")
        parts: list[bytes] = []
        while size > 0:
            if not 0 < number <= self._num_pages:
                raise ValueError("an overflow page is missing")
            page = self._page(number)
            part = page[4 : 4 + size]
            if len(part) < min(size, self._page_size - 4):
                raise ValueError("an overflow page is cut off")
            parts.append(part)
            size -= len(part)
            number = int.from_bytes(page[:4], "big")
        return b"".join(parts)


def decode_leniently(data: bytes) -> str:
    """Return a text of the database. Bytes that are not UTF-8 become replacement characters."""
    return data.decode("utf-8", "replace")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a variable-length integer, and the offset behind it."""
    value = 0
    for index in range(_VARINT):
        byte = data[at + index]
        if index == _VARINT - 1:
            return _signed(value << 8 | byte), at + _VARINT
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + index + 1
    raise AssertionError


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _size_of(kind: int) -> int:
    if kind >= _FIRST_BLOB:
        return (kind - _FIRST_BLOB) // 2
    return _SIZES[kind]  # the types 10 and 11 are reserved: IndexError


def _values(payload: bytes, at: int, types: list[int]) -> tuple[Value, ...]:
    values: list[Value] = []
    for kind in types:
        size = _size_of(kind)
        values.append(_value(kind, payload[at : at + size]))
        at += size
    return tuple(values)


def _value(kind: int, data: bytes) -> Value:
    if kind >= _FIRST_BLOB:
        return decode_leniently(data) if kind % 2 else data
    if kind == 0:
        return None
    if kind in {_ZERO, _ONE}:
        return kind - _ZERO
    if kind == _FLOAT:
        (number,) = struct.unpack(">d", data)
        return float(number)
    return int.from_bytes(data, "big", signed=True)
