"""The program of the extraction process: it reads one file after another, in steps.

A call with `open` opens a file, each further call with `next` reads a part of it. The answer of a
step has `done` and `total`, or the result with the text or the files of a picture as its body, or
`refused`. A call with `view` opens a stored picture, of which only another view is made. A call
with `decode` has the content of a picture's file as its body.
"""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import sys
import time
import zipfile
import zlib
from collections.abc import Generator, Iterator
from pathlib import Path

from app.conversation.attachments import MAX_CHARS, MAX_PICTURE_BYTES
from app.extraction.markup import html_text
from app.extraction.packages import Package, epub_text, word_text
from app.extraction.plain import MAX_BYTES, decoded, tidied
from app.extraction.refusal import Refused, RefusedFileError
from app.settings import PictureSize
from engine.worker.confinement import only_compute
from engine.worker.frames import Frame
from engine.worker.loop import answer_calls

MAX_FILE_BYTES = 1 << 30
_STEP_S = 0.3  # seconds that a step takes at least, if pages are left
_WAIT_S = 30.0  # seconds of the clock after which a step is ended
_HEAD = 4096
_PICTURES = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"BM", b"II*\0", b"MM\0*")  # decoded
_IMAGES = (b"\0\0\1\0", b"8BPS")  # refused
_HEIF = (b"heic", b"heix", b"hevc", b"hevx", b"heim", b"heis", b"mif1", b"msf1", b"avif", b"avis")
_SOUNDS = (
    b"ID3",
    b"OggS",
    b"fLaC",
    b"\xff\xfb",
    b"\xff\xf3",
    b"\xff\xf1",
    b"\x1aE\xdf\xa3",
    b"caff",
    b"FORM",
)
_ARCHIVES = (b"\x1f\x8b", b"BZh", b"7z\xbc\xaf", b"Rar!", b"\xfd7zXZ", b"(\xb5/\xfd")


def main() -> None:
    """Carry out calls until the input ends."""
    only_compute()
    answer_calls(FileReading().answer, counts_cpu_time=True)


class FileReading:
    """The file that is being read."""

    def __init__(self) -> None:
        self._steps: Iterator[Frame] = iter(())

    def answer(self, call: Frame) -> Frame:
        """Open a file, or read the next part of it."""
        # Standard output carries the answers, and a library may print.
        with _clock_limit(), contextlib.redirect_stdout(sys.stderr):
            try:
                path, stored = call.header.get("open"), call.header.get("view")
                size = PictureSize(str(call.header.get("size", PictureSize.MEDIUM)))
                if "decode" in call.header:
                    self._steps = _decoding_steps(call.body, size)
                elif path is not None:
                    self._steps = _steps(Path(str(path)), size)
                elif stored is not None:
                    self._steps = _view_steps(Path(str(stored)), size)
                return next(self._steps)
            except RefusedFileError as refusal:
                return Frame({"refused": refusal.why.value})
            except (MemoryError, RecursionError):
                return Frame({"refused": Refused.TOO_COMPLEX.value})
            except FileNotFoundError:
                return Frame({"refused": Refused.MISSING.value})
            except OSError:
                return Frame({"refused": Refused.UNREADABLE.value})
            except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError):
                return Frame({"refused": Refused.DAMAGED.value})


@contextlib.contextmanager
def _clock_limit() -> Generator[None]:
    """End this process if a step takes too long by the clock.

    The limit of a call is CPU time, because the machine may be busy. But reading may also block.
    """
    signal.setitimer(signal.ITIMER_REAL, _WAIT_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _steps(path: Path, picture_size: PictureSize) -> Iterator[Frame]:
    """Read a file. Yield the progress, then the result."""
    size = _size(path)
    with path.open("rb") as file:
        head = file.read(_HEAD)
    if b"%PDF-" in head[:1024]:
        yield from _pdf_steps(path)
        return
    if _is_picture(head):
        # The import takes 0.1 s, so only pictures pay for it.
        from app.extraction.pictures import picture_steps  # noqa: PLC0415

        yield from picture_steps(_picture_file(path, size), picture_size)
        return
    if head.startswith(b"PK\x03\x04"):
        kind, text = _package_text(path)
    else:
        _refuse_media(head)
        with path.open("rb") as file:
            text = decoded(file.read(MAX_BYTES))
        kind = "text"
        if _is_html(path, text):
            kind, text = "html", html_text(text)
    is_cut = len(text) > MAX_CHARS or (kind == "text" and size > MAX_BYTES)
    yield _result(kind, tidied(text[:MAX_CHARS]), is_cut=is_cut)


def _view_steps(path: Path, size: PictureSize) -> Iterator[Frame]:
    """Make another view of a stored picture. Yield the progress, then the result."""
    from app.extraction.pictures import view_steps  # noqa: PLC0415

    yield from view_steps(_picture_file(path, _size(path)), size)


def _decoding_steps(content: bytes, size: PictureSize) -> Iterator[Frame]:
    """Decode the content of a picture's file. Yield the progress, then the result."""
    from app.extraction.pictures import picture_steps  # noqa: PLC0415

    if not content:
        raise RefusedFileError(Refused.DAMAGED)
    if content[4:8] == b"ftyp" and content[8:12] in _HEIF:
        raise RefusedFileError(Refused.HEIF)
    if not _is_picture(content[:_HEAD]):
        raise RefusedFileError(Refused.IMAGE)
    yield from picture_steps(content, size)


def _picture_file(path: Path, num_bytes: int) -> bytes:
    """Return the content of a picture's file of this size."""
    if num_bytes > MAX_PICTURE_BYTES:
        raise RefusedFileError(Refused.PICTURE_TOO_LARGE)
    with path.open("rb") as file:
        return file.read(MAX_PICTURE_BYTES)


def _size(path: Path) -> int:
    """Return the size of a regular file, and refuse everything else."""
    status = os.lstat(path)
    if stat.S_ISLNK(status.st_mode):
        raise RefusedFileError(Refused.LINK)
    if stat.S_ISDIR(status.st_mode):
        raise RefusedFileError(Refused.FOLDER)
    if not stat.S_ISREG(status.st_mode):
        raise RefusedFileError(Refused.NO_FILE)
    if not status.st_size:
        raise RefusedFileError(Refused.EMPTY)
    if status.st_size > MAX_FILE_BYTES:
        raise RefusedFileError(Refused.TOO_LARGE)
    return status.st_size


def _result(kind: str, text: str, *, is_cut: bool, num_pages: int | None = None) -> Frame:
    if not text.strip():
        raise RefusedFileError(Refused.EMPTY)
    header = {"kind": kind, "num_pages": num_pages, "is_cut": is_cut}
    return Frame(header, text.encode("utf-8", "replace"))


def _pdf_steps(path: Path) -> Iterator[Frame]:
    # The import takes 0.2 s, so only PDF documents pay for it.
    from app.extraction.pdf import PdfPages  # noqa: PLC0415

    pages = PdfPages(path)
    texts: list[str] = []
    num_chars = 0
    reported = time.monotonic()
    for number, text in enumerate(pages, start=1):
        if num_chars + len(text) > MAX_CHARS:
            break
        num_chars += len(text)
        texts.append(text)
        if time.monotonic() - reported > _STEP_S:
            yield Frame({"done": number, "total": pages.num_pages})
            reported = time.monotonic()
    if not pages.num_with_text:
        raise RefusedFileError(Refused.DAMAGED if pages.num_damaged else Refused.SCANNED)
    text = "\n\n".join(filter(None, texts))
    is_cut = len(texts) < pages.num_pages
    yield _result("pdf", text, is_cut=is_cut, num_pages=pages.num_pages)


def _package_text(path: Path) -> tuple[str, str]:
    """Return the kind and the text of a ZIP file."""
    package = Package(path)
    names = package.names
    if "word/document.xml" in names:
        return "docx", word_text(package)
    if "META-INF/container.xml" in names:
        return "epub", epub_text(package)
    if any(name.startswith(("xl/", "ppt/")) or name == "content.xml" for name in names):
        raise RefusedFileError(Refused.OFFICE)
    raise RefusedFileError(Refused.ARCHIVE)


def _is_picture(head: bytes) -> bool:
    """Return True if a file is a picture of a kind that is decoded, by its first bytes."""
    is_webp = head[:4] == b"RIFF" and head[8:12] == b"WEBP"
    return b"\0" in head and (is_webp or head.startswith(_PICTURES))


def _refuse_media(head: bytes) -> None:
    """Refuse files of kinds that contain no text, by their first bytes."""
    is_binary = b"\0" in head
    is_riff_sound = head[:4] == b"RIFF" and head[8:12] in (b"WAVE", b"AVI ")
    if is_binary and head.startswith(_IMAGES):
        raise RefusedFileError(Refused.IMAGE)
    if head[4:8] == b"ftyp":
        raise RefusedFileError(Refused.HEIF if head[8:12] in _HEIF else Refused.SOUND)
    if is_binary and (is_riff_sound or head.startswith(_SOUNDS)):
        raise RefusedFileError(Refused.SOUND)
    if head.startswith(_ARCHIVES):
        raise RefusedFileError(Refused.ARCHIVE)
    if head.startswith(b"\xd0\xcf\x11\xe0"):
        raise RefusedFileError(Refused.OLD_OFFICE)
    if head.startswith(b"{\\rtf"):
        raise RefusedFileError(Refused.RICH_TEXT)


def _is_html(path: Path, text: str) -> bool:
    start = text[:200].lstrip().lower()
    is_page = start.startswith(("<!doctype html", "<html"))
    return is_page or path.suffix.lower() in (".html", ".htm", ".xhtml")
