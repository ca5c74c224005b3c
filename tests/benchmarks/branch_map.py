"""The branch map of a long chat: opening, scrolling, zoom, and the comparison of two branches.

    QT_QPA_PLATFORM=offscreen python -m tests.benchmarks.branch_map [--messages 2000] [--branches 200]

The engine is a fake. Opening is the time from the command until the map is painted, of the first time,
which creates the window, and the median of later ones. A frame is one step of the scroll bar and its paint. The
last figures are the times until two branches with answers of 100,000 characters are compared and
painted: of texts with a few differences, and of texts that have nothing in common.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

from PySide6.QtWidgets import QApplication

from app.conversation.tree import (
    Conversation,
    MessageNode,
    NodeId,
    add_nodes,
    new_conversation,
    set_title,
)
from app.viewmodels.branch_layout import BranchLayout
from app.viewmodels.branch_map import BranchMap
from app.widgets.branch_map.compare_window import CompareWindow
from app.widgets.branch_map.window import BranchMapWindow
from app.widgets.commands import CommandId
from engine.types import ConversationId, Role
from tests.fakes.stage import Stage

SIZE = (1180, 780)
RUNS = 3  # of the scrolling; the fastest one counts, because other programs only make one slower
WORDS = [
    "the",
    "state",
    "of",
    "a",
    "layer",
    "is",
    "folded",
    "into",
    "one",
    "matrix",
    "so",
    "that",
    "a",
    "token",
    "costs",
    "the",
    "same",
]
LONG = 100_000  # characters of a compared answer


def long_chat(name: str, num_messages: int, num_branches: int) -> Conversation:
    """Return a chat whose branches begin at random messages. The longest one has half of them."""
    pick, num_turns = random.Random(1), num_messages // 2
    first, rest = num_turns // 2, num_turns - num_turns // 2
    shares = [rest * at // (num_branches - 1) for at in range(num_branches)]
    lengths = [first, *(after - before for before, after in pairwise(shares))]
    nodes: list[MessageNode] = []
    forks: list[NodeId | None] = [None]  # a message below one of them begins another branch
    for turns in lengths:
        above = pick.choice(forks)
        for turn in range(turns):
            if turn:
                forks.append(above)
            for role in (Role.USER, Role.ASSISTANT):
                number = len(nodes)
                text = " ".join([str(number), *pick.choices(WORDS, k=40)])
                node_id = NodeId(f"n{number}")
                nodes.append(
                    MessageNode(
                        node_id=node_id, parent=above, role=role, content=text, created_at=number
                    )
                )
                above = node_id
    chat = new_conversation(ConversationId(name), now=0.0)
    return set_title(add_nodes(chat, *nodes), "Long")


def milliseconds(action: Callable[[], object]) -> float:
    begin = time.perf_counter()
    action()
    return round(1000 * (time.perf_counter() - begin), 1)


def opened(stage: Stage) -> float:
    """Return the milliseconds from the command until the map is painted."""

    def open_map() -> None:
        stage.window.commands[CommandId.BRANCH_MAP].trigger()
        window = stage.window.findChild(BranchMapWindow)
        assert window is not None
        window.repaint()
        window.map.canvas.repaint()

    return milliseconds(open_map)


def scrolled(window: BranchMapWindow, step: int) -> tuple[list[float], list[float]]:
    """Scroll the whole map down and then to the right.

    Return the seconds of each frame, and the seconds of the main thread on a core.
    """
    frames: list[float] = []
    on_core: list[float] = []
    for bar in (window.map.verticalScrollBar(), window.map.horizontalScrollBar()):
        for value in range(0, bar.maximum(), max(step, bar.maximum() // 500)):
            begin, core_begin = time.perf_counter(), time.thread_time()
            bar.setValue(value)
            window.map.canvas.repaint()
            frames.append(time.perf_counter() - begin)
            on_core.append(time.thread_time() - core_begin)
    return frames, on_core


def compared(stage: Stage, second: str) -> float:
    """Return the milliseconds until a long answer and another text are compared and painted."""
    window = CompareWindow(stage.theme, stage.window)
    chat = new_conversation(ConversationId("compared"), now=0.0)
    pair = tuple(
        (
            MessageNode(
                node_id=NodeId(str(number)),
                parent=None,
                role=Role.USER,
                content=text,
                created_at=0.0,
            ),
        )
        for number, text in enumerate((long_text(1), second))
    )

    def compare() -> None:
        window.compare(chat, (pair[0], pair[1]), ("A", "B"))
        window.text.viewport().repaint()

    spent = milliseconds(compare)
    window.close()
    return spent


def long_text(seed: int) -> str:
    pick, parts, length = random.Random(seed), list[str](), 0
    while length < LONG:
        parts.append(
            pick.choice(WORDS) + f"{pick.randrange(2000)}" + (" " if pick.random() < 0.95 else "\n")
        )
        length += len(parts[-1])
    return "".join(parts)[:LONG]


def measure(folder: Path, num_messages: int, num_branches: int) -> dict[str, object]:
    stage = Stage(folder, size=SIZE)
    chat = long_chat(stage.current, num_messages, num_branches)
    stage.core.chat.apply(chat)
    stage.settle()
    result: dict[str, object] = {
        "messages": len(chat.nodes),
        "branches": len(BranchMap(chat).ends),
        "layout_ms": milliseconds(lambda: BranchLayout(chat.children)),
        "first_open_ms": opened(stage),
    }
    window = stage.window.findChild(BranchMapWindow)
    assert window is not None
    later: list[float] = []
    for _ in range(5):
        window.close()
        stage.settle()
        later.append(opened(stage))
    result["later_open_ms"] = sorted(later)[len(later) // 2]
    for name, step in (("texts", 0), ("places", -1), ("overview", -2)):
        window.map.change_zoom(step)
        stage.settle()
        runs = [scrolled(window, 40) for _ in range(RUNS)]
        for kind, found in zip(("p95_ms", "core_p95_ms"), zip(*runs, strict=True), strict=True):
            p95s = [sorted(frames)[int(0.95 * len(frames))] for frames in found]
            result[f"scroll_{name}_{kind}"] = round(1000 * min(p95s), 2)
        result[f"frames_{name}"] = len(runs[0][0])
    result["zoom_ms"] = milliseconds(
        lambda: (window.map.change_zoom(0), window.map.canvas.repaint())
    )
    few = long_text(1).replace(" the1", " changed")
    result["compare_few_ms"] = compared(stage, few)
    result["compare_other_ms"] = compared(stage, long_text(2))
    stage.close()
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=2_000)
    parser.add_argument("--branches", type=int, default=200)
    args = parser.parse_args()
    app = QApplication(sys.argv[:1])
    with tempfile.TemporaryDirectory(prefix="rejoinder-branches-") as folder:
        print(json.dumps(measure(Path(folder), args.messages, args.branches), indent=2))
    app.quit()


if __name__ == "__main__":
    main()
