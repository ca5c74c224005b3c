"""The JSON documents in files, folders and ZIP archives that the user named. All are untrusted."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from typing_extensions import override

from app.conversation.text import one_line
from app.exchange.reading import UnreadableError
from app.words import exchange as words
from engine.plain_file import open_plain

MAX_FILES = 100_000
MAX_TOTAL_BYTES = 8_000_000_000
_ENDINGS = (".json", ".jsonl")
# The other methods allow an archive to reserve gigabytes of memory for its dictionary.
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_SHOWN_LEN = 300
_ENCRYPTED = 1  # bit in the flags of an archive's entry


class Meter:
    """The bytes that an import has read, and those that it will read as far as known."""

    def __init__(self) -> None:
        self.read = 0
        self.total = 0

    def add(self, number: int) -> None:
        self.read += number
        if self.read > MAX_TOTAL_BYTES:
            raise UnreadableError(words.TOO_MUCH)


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A JSON file in a folder or an archive."""

    name: str  # path in its folder or archive
    is_named: bool  # True if the user named this file, not a folder or an archive that has it
    size: int  # bytes; an archive may state a wrong size
    open: Callable[[], IO[bytes]]

    @property
    def label(self) -> str:
        """The path for sentences."""
        return one_line(self.name, _SHOWN_LEN)

    @contextmanager
    def text(self, meter: Meter) -> Generator[io.TextIOWrapper]:
        """Open the file as text.

        Raises:
            UnreadableError: the file cannot be read, also while the `with` block reads it.
        """
        try:
            with (
                self.open() as file,
                io.BufferedReader(_Metered(file, meter)) as metered,
                io.TextIOWrapper(metered, encoding="utf-8-sig") as text,
            ):
                yield text
        except UnicodeError:
            raise UnreadableError(words.NOT_TEXT) from None
        except OSError as error:
            raise UnreadableError(words.cannot_read(error.strerror)) from error
        except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, struct.error) as error:
            raise UnreadableError(words.BAD_ZIP) from error


class _Metered(io.RawIOBase):
    """A stream that counts the bytes that are read from it."""

    def __init__(self, file: IO[bytes], meter: Meter) -> None:
        self._file = file
        self._meter = meter

    @override
    def readable(self) -> bool:
        return True

    @override
    def readinto(self, buffer: bytearray | memoryview, /) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        data = self._file.read(len(buffer))
        self._meter.add(len(data))
        buffer[: len(data)] = data
        return len(data)


@contextmanager
def documents(path: Path) -> Generator[tuple[Document, ...]]:
    """Find the JSON files in a file, a folder or an archive. An archive stays open in the block.

    Raises:
        UnreadableError: the path cannot be read, or has too many files.
    """
    try:
        if path.is_dir():
            yield _limited(_in_folder(path))
            return
        with open_plain(path) as file:
            if zipfile.is_zipfile(file):
                with zipfile.ZipFile(file) as archive:
                    yield _limited(_in_archive(path, archive))
                return
        yield (_file(path, path.name, is_named=True), *_beside(path))
    except OSError as error:
        raise UnreadableError(words.cannot_read(error.strerror)) from error
    except (zipfile.BadZipFile, struct.error, NotImplementedError, ValueError) as error:
        raise UnreadableError(words.BAD_ZIP) from error


def _limited(found: Iterator[Document]) -> tuple[Document, ...]:
    kept: list[Document] = []
    for document in found:
        kept.append(document)
        if len(kept) > MAX_FILES:
            raise UnreadableError(words.TOO_MANY_FILES)
    return tuple(kept)


def _in_folder(folder: Path) -> Iterator[Document]:
    for file in sorted(folder.rglob("*")):
        if file.suffix.lower() in _ENDINGS and file.is_file() and not file.is_symlink():
            yield _file(file, str(file.relative_to(folder)), is_named=False)


def _beside(path: Path) -> Iterator[Document]:
    """Yield the messages.jsonl of Jan, which belongs to a thread.json."""
    messages = path.with_name("messages.jsonl")
    if path.name == "thread.json" and messages.is_file():
        yield _file(messages, messages.name, is_named=False)


def _file(path: Path, name: str, *, is_named: bool) -> Document:
    return Document(
        name=name, is_named=is_named, size=path.stat().st_size, open=lambda: open_plain(path)
    )


def _in_archive(path: Path, archive: zipfile.ZipFile) -> Iterator[Document]:
    for entry in archive.infolist():
        if entry.is_dir() or not entry.filename.lower().endswith(_ENDINGS):
            continue
        if entry.compress_type not in _METHODS or entry.flag_bits & _ENCRYPTED:
            raise UnreadableError(words.BAD_ZIP)
        yield Document(
            name=f"{path.name}/{entry.filename}",
            is_named=False,
            size=entry.file_size,
            open=lambda entry=entry: archive.open(entry),
        )
