"""Time and memory of showing another chat in the real window.

    QT_QPA_PLATFORM=offscreen QT_SCALE_FACTOR=2 python -m tests.benchmarks.bench_switch [MESSAGES ...]

Prints one JSON line per measurement. The engine is a fake; store, controllers and window are real.
A time runs from the selection in the list until the chat is painted, in three cases:

first       the chat was never shown and is read from the store after the selection
pointed at  the mouse pointer rested on the chat, so the chat was read before the selection
again       the chat was shown before

For each chat of 1,000 messages or more, a new process measures its own memory. Two figures show how
much this memory has grown: after the chat is opened at its end, and after the chat is scrolled from
its start to its end.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import closing, contextmanager
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
from app.thread_switching import switch_threads_often
from engine.types import ConversationId, FinishReason, Role, SamplingParams
from engine.usage import PromptPlan, Usage
from tests.benchmarks.bench_transcript import conversation, ms, quantile, report, wait_ms
from tests.fakes.rig import NOON
from tests.fakes.stage import Stage

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
HOME = ConversationId("home")  # the chat that is shown between two measurements


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


@contextmanager
def staged(folder: Path, *chats: Conversation) -> Generator[Stage]:
    """Open a window on the data folder `folder`, store the chats, and show the chat HOME."""
    with closing(Stage(folder)) as stage:
        for chat in chats:
            stage.stored(lambda store, chat=chat: store.create(chat))
        stage.core.library.start(None)
        garbage = GarbageSearch(stage.window)
        stage.wait(500)
        garbage.spare_all()  # exclude all present objects from garbage collection, as app.main does
        switch(stage, HOME)
        yield stage
        garbage.close()


def rest_on(stage: Stage, name: str) -> None:
    stage.core.library.expect(ConversationId(name))
    stage.wait_until(lambda: ConversationId(name) in stage.core.desk)


def switch(stage: Stage, name: str) -> float:
    """Show a chat and return the seconds until it is painted."""
    loop = QEventLoop()
    library = stage.core.library
    library.current_changed.connect(loop.quit)
    started = perf_counter()
    library.select(ConversationId(name))
    if library.current != name:  # the chat is still being read from the store
        loop.exec()
    stage.pane.view.viewport().repaint()
    wait_ms(0)  # run deferred events
    return perf_counter() - started


def bench_switch(folder: Path, sizes: list[int]) -> None:
    chats = [
        stored_chat(f"{size}-{number}", size) for size in sizes for number in range(2 * ROUNDS)
    ]
    with staged(folder, stored_chat(HOME, 20), *chats) as stage:
        for size in sizes:
            measure_switches(stage, size)


def measure_switches(stage: Stage, size: int) -> None:
    spent_s: dict[str, list[float]] = {"first": [], "pointed at": [], "again": []}
    for number in range(2 * ROUNDS):
        name = f"{size}-{number}"
        if number % 2:
            rest_on(stage, name)
        spent_s["pointed at" if number % 2 else "first"].append(switch(stage, name))
        wait_ms(50)
        switch(stage, HOME)
        wait_ms(50)
        spent_s["again"].append(switch(stage, name))
        switch(stage, HOME)
    for name, spent in spent_s.items():
        report(
            "window.switch",
            messages=size,
            shown=name,
            median_ms=ms(quantile(spent, 0.5)),
            max_ms=ms(max(spent)),
        )


def bench_memory(folder: Path, size: int) -> None:
    with staged(folder, stored_chat(HOME, 20), stored_chat("long", size)) as stage:
        process = psutil.Process()
        before = process.memory_info().rss
        switch(stage, "long")
        opened = process.memory_info().rss
        view = stage.pane.view
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
