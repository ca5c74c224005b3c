"""The price of showing costs: keys in the composer, and answers that are written meanwhile.

    python -m tests.benchmarks.costs [--pairs 10] [--keys 120] [--messages 60]

Prints two JSON lines. `typing` has the time from a key to its letter on screen, with the cost line,
which here is asked for after each key, and without it, in turn. `decoding` has the median of the
tokens per second of an answer while the engine is asked for the cost of a long chat all the time,
divided by that of the answers before and after without questions.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from contextlib import closing
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from app.cli.client import EngineClient, QueuedEngine, load_model
from app.controllers.prompt_size import PromptSizes
from app.conversation.tree import Setup
from engine.config import EngineConfig
from engine.events import RequestFinished
from engine.types import ConversationId, ForcedReply, Message, Request, RequestId, Role
from tests.benchmarks.bench_transcript import quantile
from tests.fakes.real_window import RealWindow
from tests.fakes.tiny_model import Template, build_tiny

TEXT = "The boat of the fox is small and brown, and the list has a number of words. "
ANSWER_WORDS = 300


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--keys", type=int, default=120)
    parser.add_argument("--messages", type=int, default=60, help="messages of the long chat")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = build_tiny("qwen3_5", Path(folder) / "model", Template.KEEPING)
        print(json.dumps({"typing": typing(model, Path(folder), options.pairs, options.keys)}))
        print(json.dumps({"decoding": decoding(model, options.pairs, options.messages)}))


def typing(model: Path, folder: Path, pairs: int, keys: int) -> dict[str, float]:
    """Return the 95th percentile of the milliseconds of a key, with and without the cost line."""
    app = QApplication([])
    took: dict[bool, list[float]] = {True: [], False: []}
    with closing(RealWindow(folder / "data")) as real:
        real.launch(model)
        real.core.chat.set_setup(real.current, Setup(max_tokens=4))
        real.type(TEXT * 40)
        QTest.keyClick(real.edit, Qt.Key.Key_Return)
        real.wait_until(lambda: not real.core.turns.live)
        for _ in range(pairs):
            for is_on in (True, False):
                set_delay(real.core.prompt_sizes, 0 if is_on else 1 << 30)
                took[is_on] += [type_key(app, real) for _ in range(keys)]
                real.window.pane.composer.set_text("")
    return {
        "with_p95_ms": round(quantile(took[True], 0.95) * 1e3, 2),
        "without_p95_ms": round(quantile(took[False], 0.95) * 1e3, 2),
    }


def set_delay(sizes: PromptSizes, delay_ms: int) -> None:
    sizes._question._delay.setInterval(delay_ms)  # pyright: ignore[reportPrivateUsage]


def type_key(app: QApplication, real: RealWindow) -> float:
    start = time.perf_counter()
    QTest.keyClick(real.edit, Qt.Key.Key_A)
    real.window.pane.composer.text_changed.emit()
    app.processEvents()
    real.window.pane.draft.flush()
    real.window.grab(real.edit.geometry())
    seconds = time.perf_counter() - start
    QTest.qWait(10)
    return seconds


def decoding(model: Path, pairs: int, messages: int) -> dict[str, float]:
    """Return the median ratio of tokens per second with questions to those without."""
    config = EngineConfig(idle_work=False, saves_battery=False)
    with closing(QueuedEngine(config, None)) as client:
        client.start()
        load_model(client, model, lambda _: None)
        answer(client, "warm", None)
        long = long_request(messages)
        rates = [
            answer(client, f"{one}", long if one % 2 else None) for one in range(2 * pairs + 1)
        ]
    ratios = [rates[one] * 2 / (rates[one - 1] + rates[one + 1]) for one in range(1, len(rates), 2)]
    return {"median_ratio": round(statistics.median(ratios), 4), "pairs": pairs}


def long_request(messages: int) -> Request:
    texts = [f"{number} {TEXT * 20}" for number in range(messages | 1)]
    roles = (Role.USER, Role.ASSISTANT)
    return Request(
        request_id=RequestId("long"),
        conversation_id=ConversationId("long"),
        messages=tuple(
            Message(role=roles[number % 2], content=text) for number, text in enumerate(texts)
        ),
        new_messages=frozenset(range(len(texts))),
    )


def answer(client: EngineClient, chat: str, asked: Request | None) -> float:
    """Return the tokens per second of an answer. `asked` is counted all the time meanwhile."""
    request = Request(
        request_id=RequestId(chat),
        conversation_id=ConversationId(chat),
        messages=(Message(role=Role.USER, content=TEXT),),
        new_messages=frozenset({0}),
        max_tokens=1 << 14,
        forced=ForcedReply(text="boat " * ANSWER_WORDS),
    )
    client.submit(request)
    while True:
        if asked is not None:
            client.count_tokens(asked)
        event = client.next_event()
        if isinstance(event, RequestFinished):
            return event.usage.decode_tok_s


if __name__ == "__main__":
    main()
