"""Reads files in a child process, under limits of time and memory."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import cast

from app.conversation.attachments import (
    MAX_PICTURE_BYTES,
    AttachedPicture,
    Attachment,
    PictureContent,
    make_attachment,
    make_picture,
)
from app.extraction.heif import HeifConverter
from app.extraction.refusal import Refused, RefusedFileError
from app.settings import PictureSize
from engine.types import Picture
from engine.worker.child import ChildEndedError, ChildProcess
from engine.worker.frames import Frame

# Seconds of CPU time that one step may take. A step reads pages for 0.3 s, or a whole document
# without pages; a Word document of 50 MB takes 2 s.
STEP_S = 4.5
# Seconds that one file may take. pypdf reads 20 to 100 pages in a second.
FILE_S = 300.0
MAX_BYTES = 1 << 30  # bytes of memory of the process; it uses 40 MB, and more for large files


class Extracted:
    """The text of a file, or a picture.

    `is_cut` is True if the file has more text than an attachment may have. `content` are the files
    of a picture, which PictureFiles.add stores.
    """

    def __init__(
        self, attachment: Attachment, *, is_cut: bool, content: PictureContent | None = None
    ) -> None:
        self.attachment = attachment
        self.is_cut = is_cut
        self.content = content


class Extractor:
    """The extraction process. The first call starts it, and so does the first after its end.

    All methods may be called from any thread. The process reads one file at a time.
    """

    def __init__(
        self,
        *,
        step_s: float = STEP_S,
        file_s: float = FILE_S,
        heif: HeifConverter | None = None,
    ) -> None:
        """Create an object without a process. heif: None for the converter of this system."""
        self._heif = heif or HeifConverter()
        self._lock = threading.Lock()
        self._child = ChildProcess("app.extraction.program")
        self._step_s = step_s
        self._file_s = file_s
        self._is_closed = False

    def read(
        self,
        path: Path,
        report: Callable[[float], None] = lambda _share: None,
        *,
        size: PictureSize = PictureSize.MEDIUM,
    ) -> Extracted:
        """Return the text of a file, or a picture.

        Args:
            path: the file.
            report: called with the share of the pages that is read, on the calling thread. It may
                raise an error, which ends the reading.
            size: size of a picture for the model. A picture that is no larger gets the full size.

        Raises:
            RefusedFileError: the file cannot be attached.
        """
        call = Frame({"open": str(path), "size": size.value})
        answer = self._result_or_converted(call, report, size, lambda: _content_of(path))
        if "picture" in answer.header:
            return _picture(path.name, answer, source=str(path))
        return _text(path, answer)

    def decode(self, name: str, content: bytes, size: PictureSize) -> Extracted:
        """Return the picture in the content of a file.

        Args:
            name: name of the picture.
            content: content of its file, at most MAX_PICTURE_BYTES.
            size: size of the picture for the model, as in read().

        Raises:
            RefusedFileError: the content is no picture that can be decoded.
        """
        call = _decoding(content, size)
        answer = self._result_or_converted(call, lambda _share: None, size, lambda: content)
        return _picture(name, answer)

    def view(self, path: Path, size: PictureSize) -> tuple[Picture, bytes]:
        """Return another view of a stored picture, and its PNG file.

        Raises:
            RefusedFileError: the stored picture is gone or cannot be decoded.
        """
        answer = self._result(Frame({"view": str(path), "size": size.value}), lambda _share: None)
        _original, view, _thumbnail = _parts(answer)
        return _attached_picture(answer, "0" * 64).view, view

    def _result_or_converted(
        self,
        call: Frame,
        report: Callable[[float], None],
        size: PictureSize,
        read: Callable[[], bytes],
    ) -> Frame:
        """Return the last answer to a call, or to that about the JPEG of a HEIC or AVIF file.

        read: function that returns the content of the file, which may be HEIC or AVIF.
        """
        try:
            return self._result(call, report)
        except RefusedFileError as refusal:
            if refusal.why is not Refused.HEIF:
                raise
        return self._result(_decoding(self._heif.jpeg(read()), size), report)

    def _result(self, call: Frame, report: Callable[[float], None]) -> Frame:
        """Return the last answer of the process to a call."""
        with self._lock:
            deadline = time.monotonic() + self._file_s
            too_complex = Refused.TOO_COMPLEX
            self._child.drop_ended()
            while True:
                answer = self._exchange(call, too_complex)
                header = cast("dict[str, object]", answer.header)
                if "kind" in header or "picture" in header:
                    return answer
                if "refused" in header:
                    raise RefusedFileError(Refused(str(header["refused"])))
                if "error" in header:
                    raise RefusedFileError(Refused.DAMAGED)
                if "is_picture" in header:
                    too_complex = Refused.PICTURE_TOO_COMPLEX
                done, total = header["done"], header["total"]
                assert isinstance(done, int)
                assert isinstance(total, int)
                report(done / total)
                if time.monotonic() > deadline:
                    raise RefusedFileError(too_complex)
                call = Frame({"next": True})

    def close(self) -> None:
        """End the process. A call in another thread raises RefusedFileError."""
        self._is_closed = True
        self._heif.stop()
        self._child.kill()
        with self._lock:
            self._child.close()

    def _exchange(self, call: Frame, too_complex: Refused) -> Frame:
        if self._is_closed:
            raise RefusedFileError(Refused.STOPPED)
        try:
            return self._child.exchange(call, limit_s=self._step_s, max_bytes=MAX_BYTES)
        except ChildEndedError:
            why = Refused.STOPPED if self._is_closed else too_complex
            raise RefusedFileError(why) from None


def _decoding(content: bytes, size: PictureSize) -> Frame:
    """Return the call to decode the content of a picture's file."""
    return Frame({"decode": True, "size": size.value}, content)


def _content_of(path: Path) -> bytes:
    """Return the content of a picture file, which is read in this process only to be converted."""
    with path.open("rb") as file:
        content = file.read(MAX_PICTURE_BYTES + 1)
    if len(content) > MAX_PICTURE_BYTES:
        raise RefusedFileError(Refused.PICTURE_TOO_LARGE)
    return content


def _text(path: Path, answer: Frame) -> Extracted:
    header = cast("dict[str, object]", answer.header)
    num_pages = header["num_pages"]
    assert num_pages is None or isinstance(num_pages, int)
    attachment = make_attachment(
        path.name, str(header["kind"]), answer.body.decode(), num_pages=num_pages, source=str(path)
    )
    return Extracted(attachment, is_cut=bool(header["is_cut"]))


def _picture(name: str, answer: Frame, *, source: str = "") -> Extracted:
    content = PictureContent(*_parts(answer))
    picture = _attached_picture(answer, hashlib.sha256(content.original).hexdigest())
    attachment = make_picture(name, picture, source=source)
    return Extracted(attachment, is_cut=False, content=content)


def _parts(answer: Frame) -> tuple[bytes, bytes, bytes]:
    """Return the original, the view and the thumbnail of a picture."""
    first, second, _third = cast("list[int]", answer.header["lengths"])
    body = answer.body
    return body[:first], body[first : first + second], body[first + second :]


def _attached_picture(answer: Frame, original: str) -> AttachedPicture:
    """Return the picture that an answer describes. AttachedPicture checks the values.

    Args:
        answer: the last answer about a picture.
        original: the digest of the stored file.
    """
    header = cast("dict[str, object]", answer.header["picture"])
    view = cast("dict[str, object]", header["view"])
    return AttachedPicture(
        original=original,
        extension=str(header["extension"]),
        width=_integer(header["width"]),
        height=_integer(header["height"]),
        size=PictureSize(str(header["size"])),
        view=Picture(
            digest=str(view["digest"]),
            width=_integer(view["width"]),
            height=_integer(view["height"]),
        ),
    )


def _integer(value: object) -> int:
    assert isinstance(value, int)
    return value
