"""The window with a large library: start, scrolling of the list, opening, moving, switcher, memory.

    python -m tests.benchmarks.large_library [--conversations 20000] [--messages 1000000]
                                             [--folder FOLDER]

The database is that of library_search.py, with days, folders and pins; with --folder it is kept and
used again. The engine is a fake, so all times are those of the window and the store. A time of a
frame or of an action is the time that the main thread is busy.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from app.paths import make_paths
from app.settings import Settings
from app.store.opening import open_database
from app.widgets.commands import CommandId
from tests.benchmarks.library_search import fill, p95, real_words
from tests.fakes.rig import NOON
from tests.fakes.stage import Stage

DAY = 24 * 3600.0
NUM_FOLDERS = 20


def make_library(folder: Path, conversations: int, messages: int) -> None:
    """Write a database. The chats are one to 700 days old; a fifth of them is in folders."""
    path = make_paths(folder).database
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(open_database(path).database) as database:
        fill(database, real_words(), conversations, messages)
        database.run("UPDATE search_progress SET first = 1, last = 0")  # builds no index
        database.run(
            "UPDATE conversations SET updated_at = ?1 - 700.0 * ?2 * rowid / ?3,"
            " folder_id = CASE WHEN rowid % 5 = 0 THEN 'f' || (rowid / 5 % ?4) END,"
            " pinned = rowid % 2000 = 1, archived = rowid % 10 = 3",
            (NOON, DAY, conversations, NUM_FOLDERS),
        )
        for number in range(NUM_FOLDERS):
            database.run(
                "INSERT INTO folders VALUES (?, ?, 'blue', 0, NULL, '', '')",
                (f"f{number}", f"Folder {number}"),
            )


def timed(action: Callable[[], object]) -> float:
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


def megabytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1000


def scrolled(stage: Stage, step: int) -> Iterator[float]:
    """Scroll the whole list and yield the time of each frame."""
    bar, viewport = stage.list.verticalScrollBar(), stage.list.viewport()
    for value in range(0, bar.maximum(), step):
        begin = time.perf_counter()
        bar.setValue(value)
        viewport.repaint()
        yield time.perf_counter() - begin


def opened(stage: Stage, pick: random.Random, count: int) -> Iterator[float]:
    """Open random chats and yield the time until each is painted."""
    library = stage.rig.library
    for summary in pick.sample(library.listed.unarchived, count):
        begin = time.perf_counter()
        library.select(summary.conversation_id)
        while library.current != summary.conversation_id:
            QApplication.sendPostedEvents()
            QTest.qWait(0)
        stage.pane.view.viewport().repaint()
        yield time.perf_counter() - begin


def measure(folder: Path) -> dict[str, object]:
    before = megabytes()
    begin = time.perf_counter()
    stage = Stage(folder, settings=Settings(), size=(1180, 780))
    shown = time.perf_counter() - begin
    stage.wait_until(lambda: bool(stage.rows), timeout_s=300)
    listed = time.perf_counter() - begin
    stage.settle()
    gc.collect()
    library, organiser, pick = stage.rig.library, stage.rig.core.organiser, random.Random(1)
    result: dict[str, object] = {
        "window_ms": round(1000 * shown),
        "list_ms": round(1000 * listed),
        "memory_mb": megabytes() - before,
        "rows": stage.list.model().rowCount(),
    }
    stage.list.doItemsLayout()  # lays out all rows, a part at a time
    stage.wait(5000)
    frames = list(scrolled(stage, 240))
    result["scroll_p95_ms"], result["frames"] = p95(frames), len(frames)
    result["open_p95_ms"] = p95(list(opened(stage, pick, 60)))
    ids = [one.conversation_id for one in library.listed.unarchived]
    one = [[chosen] for chosen in pick.sample(ids, 20)]
    result["pin_p95_ms"] = p95([timed(lambda ids=ids: organiser.pin(ids, True)) for ids in one])
    result["archive_one_p95_ms"] = p95(
        [timed(lambda ids=ids: organiser.archive(ids, True)) for ids in one]
    )
    result["archive_1000_ms"] = round(1000 * timed(lambda: organiser.archive(ids[:1000], True)))
    result["undo_1000_ms"] = round(1000 * timed(stage.rig.core.undoing.undo))
    switcher = stage.window.switching
    result["switcher_open_ms"] = round(1000 * timed(switcher.open))
    type_one = partial(QTest.keyClicks, switcher.popup.field)
    letters = [timed(partial(type_one, letter)) for letter in "chat 199 5"]
    result["switcher_letter_max_ms"] = round(1000 * max(letters), 1)
    switcher.popup.hide()
    result["sort_ms"] = round(1000 * timed(stage.window.commands[CommandId.BY_TITLE].trigger))
    stage.close()
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--conversations", type=int, default=20_000)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path)
    args = parser.parse_args()
    app = QApplication(sys.argv[:1])
    with tempfile.TemporaryDirectory(prefix="rejoinder-library-") as temporary:
        folder = args.folder or Path(temporary)
        make_library(folder, args.conversations, args.messages)
        print(json.dumps(measure(folder), indent=2))
    app.quit()


if __name__ == "__main__":
    main()
