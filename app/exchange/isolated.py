"""Reads files with conversations in a child process, under limits of time and memory.

Python parses JSON while it holds its lock: a chat of 30 MB, which is accepted, stops every thread
for up to seconds and can take a gigabyte. In a child process it stops nothing, and can be ended.
The pictures that it finds are decoded by another child process, that of app/extraction.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

from app.conversation.filed import FiledConversation
from app.exchange import own_json
from app.exchange.found import FoundPicture, Unreadable
from app.exchange.imported_pictures import ImportedPictures
from app.exchange.reading import UnreadableError
from app.extraction.extractor import Extractor
from app.settings import PictureSize
from app.store.pictures import PictureFiles
from app.words import exchange as words
from engine.worker.child import ChildEndedError, ChildProcess
from engine.worker.frames import Frame, unpack_texts

# Seconds of CPU time that one step may take. The slowest known chat of 30 MB takes 8 s.
_STEP_S = 30.0
_MAX_BYTES = 1 << 30  # bytes of memory of the process


class IsolatedImport:
    """The conversations of some files. Use it on one thread; any thread may call `stop`."""

    def __init__(
        self,
        paths: Sequence[Path],
        pictures: PictureFiles,
        *,
        now: float,
        step_s: float = _STEP_S,
    ) -> None:
        self._paths = paths
        self._pictures = pictures
        self._now = now
        self._step_s = step_s
        self._child = ChildProcess("app.exchange.program")
        self._extractor = Extractor()
        self._is_stopped = False
        self.share = 0.0  # share of the files that has been read

    def found(self) -> Iterator[FiledConversation | Unreadable]:
        """Yield each conversation, and each file, conversation or picture that cannot be read.

        The files of the pictures of a conversation are stored before the conversation is yielded.

        Raises:
            DiskError: the file of a picture cannot be written.
        """
        try:
            for number, path in enumerate(self._paths):
                pictures = ImportedPictures(self._pictures, self._extractor)
                for answer in self._answers(path):
                    yield from self._items(answer, pictures)
                    share = cast("float", answer.header["share"])
                    self.share = (number + share) / len(self._paths)
        finally:
            self._child.close()
            self._extractor.close()

    def stop(self) -> None:
        """End the processes. `found` ends after the present item."""
        self._is_stopped = True
        self._child.kill()
        self._extractor.close()

    def _answers(self, path: Path) -> Iterator[Frame]:
        call = Frame({"open": str(path), "now": self._now})
        is_last = False
        while not is_last and not self._is_stopped:
            try:
                answer = self._child.exchange(call, limit_s=self._step_s, max_bytes=_MAX_BYTES)
                fault = cast("str | None", answer.header.get("error"))
            except ChildEndedError:
                if self._is_stopped:
                    return
                answer, fault = Frame(), words.TOO_COMPLEX
            if fault is not None:
                answer = Frame({"unreadable": [(path.name, fault)], "share": 1.0, "is_last": True})
            yield answer
            call, is_last = Frame(), bool(answer.header["is_last"])

    def _items(
        self, answer: Frame, pictures: ImportedPictures
    ) -> Iterator[FiledConversation | Unreadable]:
        for name, reason in cast("list[tuple[str, str]]", answer.header["unreadable"]):
            yield Unreadable(name=name, reason=reason)
        found, texts = _parts(answer)
        for picture in found:
            pictures.add(picture)
        for text in texts:
            value = cast("dict[str, object]", json.loads(text))
            try:
                filed, lost = pictures.attach(own_json.from_value(value))
            except UnreadableError as error:
                yield Unreadable(name=str(value["title"]), reason=str(error))
                continue
            if self._is_stopped:  # a picture may be lost because its process was ended
                return
            yield from lost
            yield filed


def _parts(answer: Frame) -> tuple[list[FoundPicture], list[str]]:
    """Return the pictures and the texts of conversations in an answer."""
    found: list[FoundPicture] = []
    start = 0
    for key, size, length in cast("list[tuple[str, str, int]]", answer.header.get("pictures", [])):
        content = answer.body[start : start + length]
        found.append(FoundPicture(key=key, content=content, size=PictureSize(size)))
        start += length
    lengths = cast("list[int]", answer.header.get("lengths", []))
    return found, unpack_texts(lengths, answer.body[start:])
