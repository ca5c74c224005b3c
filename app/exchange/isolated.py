"""Reads files with conversations in a child process, under limits of time and memory.

Python parses JSON while it holds its lock: a chat of 30 MB, which is accepted, stops every thread for
up to seconds and can take a gigabyte. In a child process it stops nothing, and can be ended.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

from app.conversation.filed import FiledConversation
from app.exchange import own_json
from app.exchange.importing import Unreadable
from app.exchange.reading import UnreadableError
from app.words import exchange as words
from engine.worker.child import ChildEndedError, ChildProcess
from engine.worker.frames import Frame, unpack_texts

# Seconds of CPU time that one step may take. The slowest known chat of 30 MB takes 8 s.
_STEP_S = 30.0
_MAX_BYTES = 1 << 30  # bytes of memory of the process


class IsolatedImport:
    """The conversations of some files. Use it on one thread; any thread may call `stop`."""

    def __init__(self, paths: Sequence[Path], *, now: float, step_s: float = _STEP_S) -> None:
        self._paths = paths
        self._now = now
        self._step_s = step_s
        self._child = ChildProcess("app.exchange.program")
        self._is_stopped = False
        self.share = 0.0  # share of the files that has been read

    def found(self) -> Iterator[FiledConversation | Unreadable]:
        """Yield each conversation, and each file or conversation that cannot be read."""
        try:
            for number, path in enumerate(self._paths):
                for answer in self._answers(path):
                    share = cast("float", answer.header["share"])
                    self.share = (number + share) / len(self._paths)
                    yield from _items(answer)
        finally:
            self._child.close()

    def stop(self) -> None:
        """End the process. `found` ends after the present item."""
        self._is_stopped = True
        self._child.kill()

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


def _items(answer: Frame) -> Iterator[FiledConversation | Unreadable]:
    for name, reason in cast("list[tuple[str, str]]", answer.header["unreadable"]):
        yield Unreadable(name=name, reason=reason)
    lengths = cast("list[int]", answer.header.get("lengths", []))
    for text in unpack_texts(lengths, answer.body):
        value = cast("dict[str, object]", json.loads(text))
        try:
            yield own_json.from_value(value)
        except UnreadableError as error:
            yield Unreadable(name=str(value["title"]), reason=str(error))
