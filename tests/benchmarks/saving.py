"""Delays from a user's action to its commit, alone and beside long work of the store.

    python -m tests.benchmarks.saving [--chats 3000] [--messages 20] [--long 4000]

A draft is saved every 50 ms: alone, while the window imports chats and one long chat, while it
exports them, while it indexes them for the search, and while it backs them up. A connection of its
own looks every millisecond for the committed draft. Prints one JSON line for each.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication
from typing_extensions import override

from app.bridge.garbage import GarbageSearch
from app.exchange.own_json import to_json
from app.store.backups import backups_of, open_to_read
from tests.benchmarks.bench_transcript import ms, quantile, wait_ms
from tests.fakes.conversations import ConversationWriter, filed
from tests.fakes.stage import Stage

ACTION_MS = 50
LOOK_S = 0.001
ALONE_S = 5.0
PATIENCE_S = 60.0
ANSWER = "An answer of some sentences, as a model writes them. " * 24
LONG = 40  # times ANSWER is a long message: 50,000 characters


class Commits(threading.Thread):
    """Looks for the newest committed draft, and notes the time of each one that it sees."""

    def __init__(self, database: Path, conversation_id: str) -> None:
        super().__init__(daemon=True)
        self._database = database
        self._id = conversation_id
        self._is_over = threading.Event()
        self.newest = -1
        self.seen: list[tuple[float, int]] = []

    @override
    def run(self) -> None:
        with closing(open_to_read(self._database)) as reader:
            while not self._is_over.wait(LOOK_S):
                self._look(reader)

    def stop(self) -> None:
        self._is_over.set()
        self.join()

    def _look(self, reader: sqlite3.Connection) -> None:
        query = "SELECT draft FROM conversations WHERE conversation_id = ?"
        ((draft,),) = reader.execute(query, (self._id,)).fetchall()
        number = int(draft or -1)
        if number != self.newest:
            self.newest = number
            self.seen.append((time.perf_counter(), number))


def delays(stage: Stage, is_over: Callable[[], bool]) -> dict[str, object]:
    """Save drafts until a condition is true. Return the delays until they were committed."""
    saved: list[float] = []
    core = stage.core
    current = core.library.current
    stage.settle()
    core.desk.save_draft(current, "-1")
    stage.settle()
    commits = Commits(core.data_folder.folder / "conversations.db", current)
    commits.start()

    def save() -> None:
        saved.append(time.perf_counter())
        core.desk.save_draft(current, str(len(saved) - 1))

    timer = QTimer()
    timer.timeout.connect(save)
    timer.start(ACTION_MS)
    started = time.perf_counter()
    while not (is_over() and saved):
        wait_ms(ACTION_MS)
    seconds = time.perf_counter() - started
    timer.stop()
    while commits.newest < len(saved) - 1 and time.perf_counter() < started + seconds + PATIENCE_S:
        wait_ms(ACTION_MS)
    commits.stop()
    found: list[float] = []
    for at, number in commits.seen:  # a draft that was seen includes all earlier ones
        while len(found) <= number:
            found.append(at - saved[len(found)])
    return {
        "seconds": round(seconds, 1),
        "actions": len(saved),
        "commits": len(found),
        "p50_ms": ms(quantile(found, 0.5)),
        "p99_ms": ms(quantile(found, 0.99)),
        "max_ms": ms(max(found)),
    }


def write_file(path: Path, num_chats: int, num_messages: int, num_long: int) -> None:
    """Write a file with chats. The middle one has many messages, the last 100 have long ones."""
    with path.open("w", encoding="utf-8") as file:
        for number in range(num_chats):
            size = num_long if number == num_chats // 2 else num_messages
            writer = ConversationWriter(f"c{number}-")
            for turn in range(size // 2):
                answer = ANSWER * (LONG if number >= num_chats - 100 else 1)
                writer.send(f"Question {number}, turn {turn}: what about the harbour?", answer)
            file.write(f"{',' if number else '['}\n{to_json(filed(writer.conv))}")
        file.write("]\n")


def import_file(stage: Stage, file: Path) -> Callable[[], bool]:
    results: list[object] = []
    stage.core.imports.ended.connect(results.append)
    stage.core.imports.start([file], now=time.time())
    return lambda: bool(results)


def export_all(stage: Stage, file: Path) -> Callable[[], bool]:
    results: list[int] = []

    def on_exported(number: int, _name: str) -> None:
        results.append(number)

    stage.core.exports.exported.connect(on_exported)
    ids = [one.conversation_id for one in stage.core.library.listed.all]
    stage.core.exports.export_several(file, ids)
    return lambda: bool(results)


def forget_index(database: Path) -> None:
    """Put a database into the state that follows its migration from a version without a search."""
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("INSERT INTO message_search (message_search) VALUES ('delete-all')")
        connection.execute(
            "UPDATE search_progress SET first = 1,"
            " last = (SELECT max(message_number) FROM messages)"
        )


def show(work: str, figures: dict[str, object]) -> None:
    sys.stdout.write(json.dumps({"beside": work, **figures}) + "\n")
    sys.stdout.flush()


def measure(folder: Path, args: argparse.Namespace) -> None:
    file, data = folder / "all.json", folder / "data"
    write_file(file, args.chats, args.messages, args.long)
    with closing(Stage(data)) as stage:
        stage.chat("A chat that is there", "Yes.")
        database = stage.core.data_folder.folder / "conversations.db"
        until = time.perf_counter() + ALONE_S
        show("nothing", delays(stage, lambda: time.perf_counter() > until))
        show("an import", delays(stage, import_file(stage, file)))
        show("an export", delays(stage, export_all(stage, folder / "exported.json")))
        for backup in backups_of(database):
            backup.unlink()
        stage.core.backups.look()
        show("a backup", delays(stage, lambda: not stage.core.backups.is_running))
    forget_index(database)
    with closing(Stage(data)) as stage:

        def is_indexed() -> bool:
            with closing(open_to_read(database)) as reader:
                ((first, last),) = reader.execute("SELECT * FROM search_progress").fetchall()
                return first > last

        show("the index of the search", delays(stage, is_indexed))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--chats", type=int, default=3000)
    parser.add_argument("--messages", type=int, default=20)
    parser.add_argument("--long", type=int, default=4000, help="messages of one of the chats")
    app = QApplication(sys.argv[:1])
    garbage = GarbageSearch(app)  # as in the app
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder), parser.parse_args())
    garbage.close()
    del app
    return 0


if __name__ == "__main__":
    sys.exit(main())
