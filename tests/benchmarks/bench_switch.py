"""From one chat to another in the real window, measured; prints one JSON line per measurement.

    QT_QPA_PLATFORM=offscreen QT_SCALE_FACTOR=2 python tests/benchmarks/bench_switch.py [MESSAGES ...]

The engine is the fake one; store, controllers and window are real. Each time is from the choice in the
list to the end of the painting. first: never shown, read from the store after the choice; pointed at:
the pointer has rested on it, as before a click; again: shown before.
Memory is what the process grew by, each chat in a process of its own: opened at its end, and after
reading it from end to start.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import psutil
from PySide6.QtCore import QEventLoop
from PySide6.QtWidgets import QApplication

sys.path.insert(0, str(Path(__file__).parents[2]))

from app.bridge.garbage import GarbageSearch
from app.conversation.tree import (
    Conversation,
    Generation,
    MessageNode,
    NodeId,
    add_nodes,
    new_conversation,
)
from app.main import switch_threads_often
from app.settings import Appearance
from app.theme.palette import Theme
from app.widgets.main_window import MainWindow
from engine.types import ConversationId, FinishReason, PromptPlan, Role, SamplingParams, Usage
from tests.benchmarks.bench_transcript import conversation, ms, quantile, report, wait_ms
from tests.fakes.rig import NOON, Rig

SIZES = (20, 200, 1000, 4000)
ROUNDS = 8
GENERATION = Generation(
    model_path="/models/Tiny-9B-4bit",
    model_name="Tiny-9B-4bit",
    template_hash="t",
    thinking=None,
    sampling=SamplingParams(),
    max_tokens=4096,
    usage=Usage(
        plan=PromptPlan(prompt_tokens=12_431, restored=12_407, replayed=0, read=24),
        output_tokens=212,
        queue_ms=0.0,
        render_ms=1.0,
        restore_ms=6.0,
        prefill_ms=40.0,
        ttft_ms=110.0,
        total_ms=3700.0,
        decode_tok_s=58.1,
        cache_bytes=0,
    ),
    finish_reason=FinishReason.STOP,
)
HOME = ConversationId("home")  # the chat that is shown in between


def stored_chat(name: str, num_messages: int) -> Conversation:
    nodes: list[MessageNode] = []
    for item in conversation(num_messages):
        nodes.append(
            MessageNode(
                node_id=NodeId(f"{name}-{item.key}"),
                parent=nodes[-1].node_id if nodes else None,
                role=item.role,
                content=item.text,
                created_at=NOON,
                generation=GENERATION if item.role is Role.ASSISTANT else None,
            )
        )
    return add_nodes(new_conversation(ConversationId(name), now=NOON), *nodes)


class Stage:
    """A window on a store with one chat of each size."""

    def __init__(self, folder: Path, chats: list[Conversation]) -> None:
        self.rig = Rig(folder)
        self.rig.start()
        for chat in chats:
            self.rig.stored(lambda store, chat=chat: store.create(chat))
        self.rig.library.start(None)
        theme = Theme(QApplication.instance(), Appearance.LIGHT)  # pyright: ignore[reportArgumentType] (the one there is)
        self.window = MainWindow(theme, self.rig.core, self.rig.origin)
        self._garbage = GarbageSearch(self.window)
        self.window.painted.connect(self._garbage.spare_all)  # as the app does
        self.window.show()
        wait_ms(500)

    def rest_on(self, name: str) -> None:
        self.rig.library.expect(ConversationId(name))
        while ConversationId(name) not in self.rig.desk:
            wait_ms(5)

    def switch(self, name: str) -> float:
        """Show a chat; the seconds until it is painted."""
        loop = QEventLoop()
        library = self.rig.library
        library.current_changed.connect(loop.quit)
        started = perf_counter()
        library.select(ConversationId(name))
        if library.current != name:  # it is being read from the store
            loop.exec()
        self.window.pane.view.viewport().repaint()
        wait_ms(0)  # for what was put off
        return perf_counter() - started

    def close(self) -> None:
        self.window.close()
        self._garbage.close()
        self.rig.close()


def bench_switch(folder: Path, sizes: list[int]) -> None:
    chats = [
        stored_chat(f"{size}-{number}", size) for size in sizes for number in range(2 * ROUNDS)
    ]
    stage = Stage(folder, [stored_chat(HOME, 20), *chats])
    stage.switch(HOME)
    for size in sizes:
        spent_s: dict[str, list[float]] = {"first": [], "pointed at": [], "again": []}
        for number in range(2 * ROUNDS):
            name = f"{size}-{number}"
            if number % 2:
                stage.rest_on(name)
            spent_s["pointed at" if number % 2 else "first"].append(stage.switch(name))
            wait_ms(50)
            stage.switch(HOME)
            wait_ms(50)
            spent_s["again"].append(stage.switch(name))
            stage.switch(HOME)
        for name, spent in spent_s.items():
            report(
                "window.switch",
                messages=size,
                shown=name,
                median_ms=ms(quantile(spent, 0.5)),
                max_ms=ms(max(spent)),
            )
    stage.close()


def bench_memory(folder: Path, size: int) -> None:
    stage = Stage(folder, [stored_chat(HOME, 20), stored_chat("long", size)])
    stage.switch(HOME)
    process = psutil.Process()
    before = process.memory_info().rss
    stage.switch("long")
    opened = process.memory_info().rss
    view = stage.window.pane.view
    while not view.statistics().is_idle:
        wait_ms(100)
    view.jump_to_start()
    bar = view.verticalScrollBar()
    while bar.value() < bar.maximum():
        bar.setValue(bar.value() + bar.pageStep())
        wait_ms(0)
    read = process.memory_info().rss
    report(
        "window.memory",
        messages=size,
        characters=sum(len(item.text) for item in conversation(size)),
        opened_mb=round((opened - before) / 1e6, 1),
        read_through_mb=round((read - before) / 1e6, 1),
    )
    stage.close()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("messages", nargs="*", type=int, default=SIZES)
    parser.add_argument("--memory", action="store_true", help="measure memory, in this process")
    args = parser.parse_args()
    switch_threads_often()
    _app = QApplication([])
    with tempfile.TemporaryDirectory() as folder:
        if args.memory:
            bench_memory(Path(folder), args.messages[0])
            return
        bench_switch(Path(folder), list(args.messages))
    for size in args.messages:
        if size >= 1000:
            subprocess.run([sys.executable, __file__, str(size), "--memory"], check=True)


if __name__ == "__main__":
    main()
