"""The JSON documents in files, folders and ZIP archives that the user named, and their pictures.

All are untrusted. A picture is found by a key, which the messages of the other app name:

    ChatGPT     "file-1a" or "file_1a", the start of the file's name: file-1a-photo.jpg, file_1a.dat
    LM Studio   "user-files/1700000000000 - 431.png", folder and name of the file
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from typing_extensions import override

from app.conversation.attachments import MAX_PICTURE_BYTES
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
_PREFIXES = ("file-", "file_")  # of ChatGPT's ids of files
USER_FILES = "user-files"  # folder of LM Studio's attached files, beside that of the conversations
_CONVERSATIONS = "conversations"
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
    """A file in a folder or an archive: JSON, or a picture."""

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
        with self._metered(meter) as metered, io.TextIOWrapper(metered, "utf-8-sig") as text:
            yield text

    def content(self, meter: Meter) -> bytes:
        """Return the content of a picture.

        Raises:
            UnreadableError: the file cannot be read, or is too large for a picture.
        """
        meter.total += min(self.size, MAX_PICTURE_BYTES)
        with self._metered(meter) as metered:
            content = metered.read(MAX_PICTURE_BYTES + 1)
        if len(content) > MAX_PICTURE_BYTES:
            raise UnreadableError(words.PICTURE_TOO_LARGE)
        return content

    @contextmanager
    def _metered(self, meter: Meter) -> Generator[io.BufferedReader[_Metered]]:
        try:
            with self.open() as file, io.BufferedReader(_Metered(file, meter)) as metered:
                yield metered
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """The files of one path that the user named."""

    documents: tuple[Document, ...]
    pictures: Mapping[str, Document]  # by their keys


@contextmanager
def sources(path: Path) -> Generator[Sources]:
    """Find the files in a file, a folder or an archive. An archive stays open in the block.

    Raises:
        UnreadableError: the path cannot be read, or has too many files.
    """
    try:
        if path.is_dir():
            yield _limited((*_in_folder(path), *_user_files(path)))
            return
        with open_plain(path) as file:
            if zipfile.is_zipfile(file):
                with zipfile.ZipFile(file) as archive:
                    yield _limited(_in_archive(path, archive))
                return
        named = _file(path, path.name, is_named=True)
        yield _limited((named, *_beside(path), *_user_files(path)))
    except OSError as error:
        raise UnreadableError(words.cannot_read(error.strerror)) from error
    except (zipfile.BadZipFile, struct.error, NotImplementedError, ValueError) as error:
        raise UnreadableError(words.BAD_ZIP) from error


def _limited(found: Iterable[Document]) -> Sources:
    documents: list[Document] = []
    pictures: dict[str, Document] = {}
    for number, file in enumerate(found, start=1):
        if number > MAX_FILES:
            raise UnreadableError(words.TOO_MANY_FILES)
        key = _picture_key(file.name)
        if file.is_named or file.name.lower().endswith(_ENDINGS):
            documents.append(file)
        elif key:
            pictures.setdefault(key, file)
    return Sources(documents=tuple(documents), pictures=pictures)


def _picture_key(name: str) -> str:
    """Return the key of a file that may be a picture, or "" for any other file."""
    path = PurePosixPath(name)
    if path.parent.name == USER_FILES:
        return f"{USER_FILES}/{path.name}"
    return file_id(path.name)


def file_id(name: str) -> str:
    """Return ChatGPT's id at the beginning of the name of a file, or "" without one."""
    if not name.startswith(_PREFIXES):
        return ""
    end = len(_PREFIXES[0])
    while end < len(name) and name[end].isascii() and name[end].isalnum():
        end += 1
    return name[:end]


def _in_folder(folder: Path) -> Iterator[Document]:
    for file in sorted(folder.rglob("*")):
        name = file.relative_to(folder).as_posix()
        if _is_wanted(name) and file.is_file() and not file.is_symlink():
            yield _file(file, name, is_named=False)


def _is_wanted(name: str) -> bool:
    return name.lower().endswith(_ENDINGS) or bool(_picture_key(name))


def _user_files(path: Path) -> Iterator[Document]:
    """Yield the attached files of LM Studio, which stand beside the folder of its conversations."""
    for folder in (path, *path.parents):
        if folder.name != _CONVERSATIONS:
            continue
        try:
            files = sorted(folder.with_name(USER_FILES).iterdir())
        except OSError:
            return
        for file in files:
            is_picture = file.suffix.lower() not in _ENDINGS
            if is_picture and file.is_file() and not file.is_symlink():
                yield _file(file, f"{USER_FILES}/{file.name}", is_named=False)
        return


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
        if entry.is_dir() or not _is_wanted(entry.filename):
            continue
        if entry.compress_type not in _METHODS or entry.flag_bits & _ENCRYPTED:
            if not entry.filename.lower().endswith(_ENDINGS):
                continue
            raise UnreadableError(words.BAD_ZIP)
        yield Document(
            name=f"{path.name}/{entry.filename}",
            is_named=False,
            size=entry.file_size,
            open=lambda entry=entry: archive.open(entry),
        )
