"""Delays of the main thread and of the store's thread while the database is backed up.

    python -m tests.benchmarks.backing_up [--megabytes 2000]

A precise timer of 5 ms runs on the main thread, first while the app is idle and then during the
backup. The store answers a call every 50 ms. Prints one JSON line.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtWidgets import QApplication

from app.store.backups import backups_of
from tests.benchmarks.bench_transcript import Gaps, wait_ms
from tests.fakes.stage import Stage

CALL_MS = 50
BLOB = 1_000_000


def fill(path: Path, megabytes: int) -> None:
    """Make the database large. The backup copies pages and does not care what they hold."""
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE ballast (blob BLOB)")
        for _ in range(megabytes):
            database.execute("INSERT INTO ballast VALUES (randomblob(?))", (BLOB,))


def calls_until(stage: Stage, is_over: Callable[[], bool]) -> dict[str, object]:
    """Call the store until a condition is true. Return the delays of both threads."""
    gaps = Gaps()
    times: list[float] = []
    while not is_over():
        asked = time.perf_counter()
        stage.stored(lambda store: store.summaries())
        times.append(time.perf_counter() - asked)
        wait_ms(CALL_MS)
    gaps.stop()
    return {**gaps.figures(), "store_call_max_ms": round(1000 * max(times), 1)}


def measure(folder: Path, megabytes: int) -> dict[str, object]:
    with closing(Stage(folder)) as stage:
        stage.chat("A question", "An answer")
        path = stage.core.data_folder.folder / "conversations.db"
    fill(path, megabytes)
    with closing(Stage(folder)) as stage:
        until = time.monotonic() + 5
        idle = calls_until(stage, lambda: time.monotonic() > until)
        started, cpu = time.perf_counter(), time.process_time()
        stage.core.backups.look()
        during = calls_until(stage, lambda: not stage.core.backups.is_running)
        return {
            "megabytes": megabytes,
            "seconds": round(time.perf_counter() - started, 1),
            "cpu_seconds": round(time.process_time() - cpu, 1),
            "made": len(backups_of(path)),
            "idle": idle,
            "during": during,
        }


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--megabytes", type=int, default=2000)
    args = parser.parse_args()
    app = QApplication(sys.argv[:1])
    with tempfile.TemporaryDirectory() as folder:
        sys.stdout.write(json.dumps(measure(Path(folder), args.megabytes)) + "\n")
    del app
    return 0


if __name__ == "__main__":
    sys.exit(main())
