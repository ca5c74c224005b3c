"""Measures the window while 100 MB of files are dropped and read.

    QT_QPA_PLATFORM=offscreen python -m tests.benchmarks.attaching_window [--megabytes 100] [--files 20]

The window runs the real engine with a tiny model. Files of text and PDF documents are dropped on it
while a message is typed. A timer of 4 ms on the main thread measures how long other work kept it
waiting. Prints one JSON line: the 95th percentile and the longest of these delays in ms, the same for
typing alone on the same machine (idle_), the seconds until all files were attached, and the memory
of the window and of the extraction process in MB.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import tempfile
import threading
import time
from pathlib import Path

import psutil
from PySide6.QtCore import QMimeData, QPointF, Qt, QTimer, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from typing_extensions import override

from tests.fakes.hostile_files import pdf_of
from tests.fakes.real_window import RealWindow
from tests.fakes.tiny_model import Template, build_tiny

_TICK_MS = 4
_LINE = "The quick brown fox jumps over the lazy dog, and the dog sleeps on.\n"


class Delays:
    """The delays of a timer on the main thread."""

    def __init__(self) -> None:
        self.values: list[float] = []
        self._last = time.perf_counter()
        self._timer = QTimer(interval=_TICK_MS)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._tick)
        self._timer.start()

    def _tick(self) -> None:
        now = time.perf_counter()
        self.values.append(max(0.0, (now - self._last) * 1e3 - _TICK_MS))
        self._last = now

    def stop(self) -> None:
        self._timer.stop()

    def percentile(self, share: float) -> float:
        ordered = sorted(self.values)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def make_files(folder: Path, megabytes: int, number: int) -> list[Path]:
    size = megabytes * 1_000_000 // number
    paths: list[Path] = []
    for index in range(number):
        path = folder / f"{index:02}.txt"
        if index % 5 == 4:
            path = path.with_suffix(".pdf")
            path.write_bytes(pdf_of(*("\n".join([_LINE.strip()] * 40) for _ in range(60))))
        else:
            path.write_text(f"File {index}.\n" + _LINE * (size // len(_LINE)), encoding="utf-8")
        paths.append(path)
    return paths


def drop(window: RealWindow, paths: list[Path]) -> None:
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    target, middle = window.window, window.window.rect().center()
    copy, left = Qt.DropAction.CopyAction, Qt.MouseButton.LeftButton
    none = Qt.KeyboardModifier.NoModifier
    QApplication.sendEvent(target, QDragEnterEvent(middle, copy, mime, left, none))
    QApplication.sendEvent(target, QDropEvent(QPointF(middle), copy, mime, left, none))


def type_words(window: RealWindow) -> None:
    """Type two words, as a very fast typist does: 50 keys a second."""
    for key in "a question ":
        QTest.keyClicks(window.edit, key)
        window.wait(20)


class PeakOfChildren(threading.Thread):
    """The largest memory of a child process, measured on a thread of its own."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.megabytes = 0.0
        self._pause = threading.Event()
        self.start()

    @override
    def run(self) -> None:
        while True:
            for child in psutil.Process().children():
                with contextlib.suppress(psutil.Error):
                    self.megabytes = max(self.megabytes, child.memory_info().rss / 1e6)
            self._pause.wait(0.25)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--files", type=int, default=20)
    parser.add_argument("--idle-s", type=float, default=10.0)
    args = parser.parse_args()
    application = QApplication(["attaching"])
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        model = build_tiny("qwen3_5", root / "model", Template.KEEPING)
        window = RealWindow(root / "data")
        window.launch(model)
        window.wait_until(lambda: window.core.models.status.facts is not None, 60)
        window.wait(500)
        paths = make_files(root, args.megabytes, args.files)
        idle, until = Delays(), time.perf_counter() + args.idle_s
        while time.perf_counter() < until:
            type_words(window)
        idle.stop()
        before = psutil.Process().memory_info().rss / 1e6
        children = PeakOfChildren()
        delays, started = Delays(), time.perf_counter()
        drop(window, paths)
        while window.core.attachments.is_opening(window.current):
            type_words(window)
        seconds = time.perf_counter() - started
        window.wait(3000)
        result = {
            "files": len(window.core.desk.get(window.current).draft_attachments),
            "seconds": round(seconds, 1),
            "idle_p95_ms": round(idle.percentile(0.95), 1),
            "idle_longest_ms": round(max(idle.values), 1),
            "p95_ms": round(delays.percentile(0.95), 1),
            "longest_ms": round(max(delays.values), 1),
            "window_mb": round(psutil.Process().memory_info().rss / 1e6),
            "window_before_mb": round(before),
            "largest_child_mb": round(children.megabytes),
        }
        window.close()
    print(json.dumps(result))
    del application


if __name__ == "__main__":
    main()
