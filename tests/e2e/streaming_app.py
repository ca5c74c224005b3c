"""A program that test_kill.py kills: the app without its window, answering message after message.

    python tests/e2e/streaming_app.py DATA_DIR MODEL_DIR

It prints "READY" when it has read the stored conversations, then one line for each piece of text:
time.monotonic() in seconds, conversation id, reply id, number of characters so far.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from PySide6.QtCore import QCoreApplication

from app.controllers.core import Core
from app.paths import make_paths
from app.settings import Settings
from app.store.lock import InstanceLock
from engine.events import RequestFailed, RequestFinished, TextDelta
from engine.types import RequestId
from tests.fakes.real_window import real_core


class Streamer:
    """A loop of messages: sends the next one when an answer ends, and prints each piece of text."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._lengths: dict[RequestId, int] = {}
        self._chat = core.library.current
        self._is_ready = False
        core.library.list_changed.connect(self._on_list_changed)
        core.bridge.request_changed.connect(self._on_request_changed)

    def _on_list_changed(self) -> None:
        if not self._is_ready:
            self._is_ready = True
            sys.stdout.write("READY\n")
            self._send()

    def _send(self) -> None:
        assert self._core.chat.send(self._chat, "Please write a long story.")

    def _on_request_changed(self, event: object) -> None:
        assert not isinstance(event, RequestFailed), event
        if isinstance(event, TextDelta):
            name = event.request_id
            self._lengths[name] = self._lengths.get(name, 0) + len(event.text)
            (live,) = self._core.turns.live
            line = f"{time.monotonic()} {self._chat} {live} {self._lengths[name]}\n"
            sys.stdout.write(line)
            sys.stdout.flush()
        elif isinstance(event, RequestFinished):
            self._send()


def main() -> None:
    paths = make_paths(Path(sys.argv[1]))
    with InstanceLock(paths.data_dir):
        app = QCoreApplication(sys.argv[:1])
        core = real_core(paths.data_dir, Path(sys.argv[2]), Settings())
        streamer = Streamer(core)
        core.open()
        core.start()
        app.exec()
        del streamer


if __name__ == "__main__":
    main()
