"""Delays of the main thread while the window imports chats, and the time that cancelling takes.

    python -m tests.benchmarks.importing [--chats 10000] [--messages 4]

A precise timer of 5 ms runs on the main thread. Prints one JSON line.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtWidgets import QApplication

from app.bridge.garbage import GarbageSearch
from app.exchange.own_json import to_json
from tests.benchmarks.bench_transcript import Gaps, wait_ms
from tests.fakes.conversations import ConversationWriter, filed
from tests.fakes.stage import Stage

LOOK_MS = 5
ANSWER = "An answer of some sentences, as a model writes them. " * 8


def write_file(path: Path, num_chats: int, num_messages: int, seed: str) -> None:
    with path.open("w", encoding="utf-8") as file:
        for number in range(num_chats):
            writer = ConversationWriter(f"{seed}-{number}")
            for turn in range(num_messages // 2):
                writer.send(f"Question {number}, turn {turn}: what about the harbour?", ANSWER)
            file.write(f"{',' if number else '['}\n{to_json(filed(writer.conv))}")
        file.write("]\n")


def run(stage: Stage, file: Path) -> float:
    """Import a file, and return the seconds that it took."""
    results: list[object] = []
    stage.core.imports.ended.connect(results.append)
    started = time.perf_counter()
    stage.core.imports.start([file], now=time.time())
    while not results:
        wait_ms(LOOK_MS)
    return time.perf_counter() - started


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--chats", type=int, default=10_000)
    parser.add_argument("--messages", type=int, default=4)
    args = parser.parse_args()
    app = QApplication(sys.argv[:1])
    garbage = GarbageSearch(app)  # as in the app
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_file(folder / "all.json", args.chats, args.messages, "a")
        write_file(folder / "more.json", args.chats, args.messages, "b")
        with closing(Stage(folder)) as stage:
            stage.chat("A chat that is there", "Yes.")
            garbage.spare_all()
            gaps = Gaps()
            seconds = run(stage, folder / "all.json")
            wait_ms(500)  # the list is shown
            gaps.stop()
            stage.core.imports.start([folder / "more.json"], now=time.time())
            wait_ms(1000)
            cancelled = time.perf_counter()
            ended: list[object] = []
            stage.core.imports.ended.connect(ended.append)
            stage.core.imports.cancel()
            while not ended:
                wait_ms(LOOK_MS)
            row = {
                "chats": args.chats,
                "seconds": round(seconds, 1),
                "cancel_s": round(time.perf_counter() - cancelled, 2),
                **gaps.figures(),
            }
    sys.stdout.write(json.dumps(row) + "\n")
    garbage.close()
    del app
    return 0


if __name__ == "__main__":
    sys.exit(main())
