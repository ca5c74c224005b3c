"""The program of the import process: it reads one file after another, in steps.

A call with `open` begins a file, each further call reads the next conversations of it. The answer
of a step has them as JSON of our own format, so that the app parses nothing that another program
wrote, and before them the files of their pictures.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import cast

from app.conversation.filed import FiledConversation
from app.exchange import own_json
from app.exchange.found import FoundPicture, Unreadable
from app.exchange.importing import Import
from app.exchange.sources import Meter
from engine.worker.confinement import only_compute
from engine.worker.frames import Frame, pack_texts
from engine.worker.loop import answer_calls

# A step ends after this number of conversations, or of characters and bytes of pictures.
_STEP_CHATS = 20
_STEP_CHARS = 1_000_000


def main() -> None:
    """Carry out calls until the input ends."""
    only_compute()
    answer_calls(_FileInSteps().answer, counts_cpu_time=True)


class _FileInSteps:
    """The file that is being read."""

    def __init__(self) -> None:
        self._found: Iterator[FiledConversation | FoundPicture | Unreadable] = iter(())
        self._meter = Meter()

    def answer(self, call: Frame) -> Frame:
        """Open a file, or read the next conversations of it."""
        if "open" in call.header:
            now = cast("float", call.header["now"])
            work = Import([Path(str(call.header["open"]))], now=now)
            self._found, self._meter = work.found(), work.meter
        texts: list[str] = []
        pictures: list[FoundPicture] = []
        unreadable: list[tuple[str, str]] = []
        num_chars, is_last = 0, True
        for one in self._found:
            if isinstance(one, Unreadable):
                unreadable.append((one.name, one.reason))
            elif isinstance(one, FoundPicture):
                pictures.append(one)
                num_chars += len(one.content)
            else:
                texts.append(own_json.to_json(one))
                num_chars += len(texts[-1])
            if len(texts) + len(unreadable) >= _STEP_CHATS or num_chars >= _STEP_CHARS:
                is_last = False
                break
        lengths, body = pack_texts(texts)
        share = 1.0 if is_last else min(1.0, self._meter.read / max(1, self._meter.total))
        header = {
            "lengths": lengths,
            "pictures": [(one.key, one.size.value, len(one.content)) for one in pictures],
            "unreadable": unreadable,
            "share": share,
            "is_last": is_last,
        }
        return Frame(header, b"".join((*(one.content for one in pictures), body)))
