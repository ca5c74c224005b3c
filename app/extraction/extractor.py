"""Reads files in a child process, under limits of time and memory."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import cast

from app.conversation.attachments import Attachment, make_attachment
from app.extraction.refusal import Refused, RefusedFileError
from engine.worker.child import ChildEndedError, ChildProcess
from engine.worker.frames import Frame

# Seconds of CPU time that one step may take. A step reads pages for 0.3 s, or a whole document
# without pages; a Word document of 50 MB takes 2 s.
STEP_S = 4.5
# Seconds that one file may take. pypdf reads 20 to 100 pages in a second.
FILE_S = 300.0
MAX_BYTES = 1 << 30  # bytes of memory of the process; it uses 40 MB, and more for large files


class Extracted:
    """The text of a file. `is_cut` is True if the file has more text than an attachment may have."""

    def __init__(self, attachment: Attachment, *, is_cut: bool) -> None:
        self.attachment = attachment
        self.is_cut = is_cut


class Extractor:
    """The extraction process. The first call starts it, and so does the first after its end.

    All methods may be called from any thread. The process reads one file at a time.
    """

    def __init__(self, *, step_s: float = STEP_S, file_s: float = FILE_S) -> None:
        self._lock = threading.Lock()
        self._child = ChildProcess("app.extraction.program")
        self._step_s = step_s
        self._file_s = file_s
        self._is_closed = False

    def read(self, path: Path, report: Callable[[float], None] = lambda _share: None) -> Extracted:
        """Return the text of a file.

        Args:
            path: the file.
            report: called with the share of the pages that is read, on the calling thread. It may
                raise an error, which ends the reading.

        Raises:
            RefusedFileError: the file has no text that can be attached.
        """
        with self._lock:
            deadline = time.monotonic() + self._file_s
            call = Frame({"open": str(path)})
            self._child.drop_ended()
            while True:
                answer = self._exchange(call)
                header = cast("dict[str, object]", answer.header)
                if "kind" in header:
                    return _extracted(path, answer)
                if "refused" in header:
                    raise RefusedFileError(Refused(str(header["refused"])))
                if "error" in header:
                    raise RefusedFileError(Refused.DAMAGED)
                done, total = header["done"], header["total"]
                assert isinstance(done, int)
                assert isinstance(total, int)
                report(done / total)
                if time.monotonic() > deadline:
                    raise RefusedFileError(Refused.TOO_COMPLEX)
                call = Frame({"next": True})

    def close(self) -> None:
        """End the process. A call in another thread raises RefusedFileError."""
        self._is_closed = True
        self._child.kill()
        with self._lock:
            self._child.close()

    def _exchange(self, call: Frame) -> Frame:
        if self._is_closed:
            raise RefusedFileError(Refused.STOPPED)
        try:
            return self._child.exchange(call, limit_s=self._step_s, max_bytes=MAX_BYTES)
        except ChildEndedError:
            why = Refused.STOPPED if self._is_closed else Refused.TOO_COMPLEX
            raise RefusedFileError(why) from None


def _extracted(path: Path, answer: Frame) -> Extracted:
    header = cast("dict[str, object]", answer.header)
    num_pages = header["num_pages"]
    assert num_pages is None or isinstance(num_pages, int)
    attachment = make_attachment(
        path.name, str(header["kind"]), answer.body.decode(), num_pages=num_pages, source=str(path)
    )
    return Extracted(attachment, is_cut=bool(header["is_cut"]))
