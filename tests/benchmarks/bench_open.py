"""From the click on a stored conversation to its picture: one JSON line a click, one with the median.

    QT_QPA_PLATFORM=offscreen QT_SCALE_FACTOR=2 python -m tests.benchmarks.bench_open [--python-gc]

The store, the window and its controllers are the app's own; each conversation is opened for the first
time, and the one before it has settled. cpu_ms counts all threads: it says more on a busy machine.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from time import perf_counter, process_time

from PySide6.QtCore import QEventLoop, QTimer
from PySide6.QtWidgets import QApplication

from app.conversation.tree import Conversation, Generation, Node, NodeId, add_nodes
from app.main import search_less_garbage
from app.settings import Appearance
from app.store.conversations import open_store
from app.theme.palette import Theme
from app.widgets.main_window import MainWindow
from engine.types import (
    ConversationId,
    FinishReason,
    PromptPlan,
    Reason,
    ReasonKind,
    ReplyTokens,
    Role,
)
from tests.benchmarks.bench_transcript import conversation as sample
from tests.fakes.conversations import GENERATION, USAGE
from tests.fakes.rig import Rig

NUM_MESSAGES = 2000
NUM_TOKENS = 120  # of a reply
NUM_CLICKS = 12
SIZE = (1180, 780)


def stored(number: int) -> Conversation:
    """A conversation as the store keeps it: every reply has its own seed, cost and tokens."""
    name = ConversationId(f"chat {number}")
    nodes: list[Node] = []
    parent: NodeId | None = None
    for index, item in enumerate(sample(NUM_MESSAGES)):
        is_reply = item.role is Role.ASSISTANT
        node = Node(
            node_id=NodeId(f"{name} {index}"),
            parent=parent,
            role=item.role,
            content=item.text,
            created_at=float(index),
            reply=_tokens(index) if is_reply else None,
            generation=_generation(index) if is_reply else None,
        )
        nodes.append(node)
        parent = node.node_id
    empty = Conversation(conversation_id=name, created_at=0.0, updated_at=float(number), title=name)
    return add_nodes(empty, *nodes)


def _tokens(index: int) -> ReplyTokens:
    token_ids = tuple((index * 7919 + at * 104_729) % 150_000 for at in range(NUM_TOKENS))
    return ReplyTokens.of(token_ids, answer_start=0, tokenizer_hash="tokenizer")


def _reasons(index: int) -> tuple[Reason, ...]:
    """No two replies' are the same text: nothing that was parsed once serves another."""
    return (
        Reason(
            kind=ReasonKind.REASONING_DROPPED,
            num_tokens=index + 2,
            at=index,
            text=f"The model's template leaves out {index + 2:,} tokens of earlier thoughts.",
        ),
        Reason(
            kind=ReasonKind.NEW_MESSAGE,
            num_tokens=3,
            at=index + 2,
            text=f"Message {index} is new.",
        ),
    )


def _generation(index: int) -> Generation:
    plan = PromptPlan(
        prompt_tokens=index + 3, restored=index, replayed=0, read=3, reasons=_reasons(index)
    )
    return replace(
        GENERATION,
        sampling=replace(GENERATION.sampling, seed=index),
        usage=replace(USAGE, plan=plan, ttft_ms=float(index)),
        finish_reason=FinishReason.STOP,
    )


def wait_ms(milliseconds: int) -> None:
    loop = QEventLoop()
    QTimer.singleShot(milliseconds, loop.quit)
    loop.exec()


def click(rig: Rig, window: MainWindow, number: int) -> dict[str, object]:
    """Open one conversation and paint it."""
    loop = QEventLoop()
    opened = rig.library.current_changed.connect(loop.quit)
    started, cpu_started = perf_counter(), process_time()
    rig.library.select(ConversationId(f"chat {number}"))
    loop.exec()
    window.pane.view.viewport().repaint()
    spent, cpu_spent = perf_counter() - started, process_time() - cpu_started
    rig.library.current_changed.disconnect(opened)
    while not window.pane.view.statistics().is_idle:
        wait_ms(100)
    return {"ms": round(spent * 1e3, 1), "cpu_ms": round(cpu_spent * 1e3, 1)}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--python-gc", action="store_true", help="leave Python's own thresholds")
    args = parser.parse_args()
    app = QApplication(sys.argv[:1])
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(Path(folder) / "conversations.db", now=0.0).store
        for number in range(NUM_CLICKS):
            store.create(stored(number))
        store.close()
        rig = Rig(Path(folder))
        window = MainWindow(Theme(app, Appearance.LIGHT), rig.core, rig.origin)
        window.resize(*SIZE)
        window.show()
        rig.start()
        wait_ms(500)
        gc.collect()
        if not args.python_gc:
            search_less_garbage()
        clicks = [click(rig, window, number) for number in range(NUM_CLICKS)]
        window.hide()
        rig.close()
    for figures in clicks:
        sys.stdout.write(json.dumps({"benchmark": "open", **figures}) + "\n")
    summary = {
        f"{what}_{name}": round(value([float(str(one[what])) for one in clicks]), 1)
        for what in ("ms", "cpu_ms")
        for name, value in (("min", min), ("median", statistics.median), ("max", max))
    }
    sys.stdout.write(json.dumps({"benchmark": "open", "messages": NUM_MESSAGES, **summary}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
