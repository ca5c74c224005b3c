"""Measures how soon the app is gone when it is quit in the middle of an answer.

    python -m tests.benchmarks.quit [--model DIR] [--rounds 20] [--tokens 4000] [--load 4]

Starts the app in a process of its own (on DISPLAY if it is set, else on Qt's offscreen platform),
with a tiny hybrid model unless --model names another, and sends a message of about --tokens tokens,
none of which is on disk. When the answer has begun, --load processes begin to compute, and the app gets
SIGTERM. Prints the seconds until the window is gone and until the process is gone.

The next start is checked in each round: the store opens whole, the answer has at least the text that
was on show, and the answer can be continued. `restored` are the tokens of that chat that came from disk.
Returns 1 if a check fails, or if the slowest process took more than 1.5 s.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from app.conversation.tree import MessageStatus, shown_path
from app.paths import make_paths
from app.store.conversations import open_store
from engine.types import ConversationId
from tests.fakes.tiny_model import build_tiny

_ROOT = Path(__file__).parents[2]
_LIMIT_S = 1.5
# Time in which the load takes effect before the app is quit.
_LOAD_S = 0.3


@dataclass(frozen=True)
class Quit:
    """The figures of one round."""

    hidden_s: float
    gone_s: float
    restored: int | None  # tokens of the last round's chat that came from disk; None in the first


@contextmanager
def waiting_load(number: int) -> Generator[list[subprocess.Popen[bytes]]]:
    """Start processes that compute without end, and stop them until SIGCONT."""
    processes = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(number)
    ]
    for process in processes:
        process.send_signal(signal.SIGSTOP)
    try:
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.wait()


def one_round(data: Path, model: Path, text: str, num_load: int) -> Quit | None:
    """Start the app, quit it in the middle of an answer, and check what it stored.

    Return None if the answer ended first: the tiny model may draw the end of its reply at any time.
    """
    platform = "xcb" if os.environ.get("DISPLAY") else "offscreen"
    command = [sys.executable, "-m", "tests.benchmarks.quitting_window", data, model, text]
    found: dict[str, Any] = {}
    with (
        waiting_load(num_load) as load,
        subprocess.Popen(
            command,
            cwd=_ROOT,
            env={**os.environ, "HF_HUB_OFFLINE": "1", "QT_QPA_PLATFORM": platform},
            stdout=subprocess.PIPE,
            text=True,
        ) as app,
    ):
        assert app.stdout is not None
        while "writing" not in found:
            found |= json.loads(app.stdout.readline())
            assert "error" not in found, found
        for process in load:
            process.send_signal(signal.SIGCONT)
        threading.Event().wait(_LOAD_S)
        began = time.monotonic()
        app.send_signal(signal.SIGTERM)
        status = app.wait()
        gone_s = time.monotonic() - began
        found |= json.loads(app.stdout.readline())
    assert status == 0, status
    was_cut = check_stored(data, ConversationId(found["writing"]), found["characters"])
    if not was_cut:
        return None
    return Quit(found["hidden"] - began, gone_s, found.get("restored"))


def check_stored(data: Path, chat: ConversationId, num_characters: int) -> bool:
    """Assert that an answer is stored with the text that was on show. Return whether it was cut off."""
    opened = open_store(make_paths(data).database, now=time.time())
    try:
        assert opened.problem is None, opened.problem
        assert opened.is_checked, "the database was not closed"
        reply = shown_path(opened.store.load(chat))[-1]
        assert reply.status in (MessageStatus.STOPPED, MessageStatus.COMPLETE), reply.status
        assert len(reply.content) + len(reply.reasoning) >= num_characters
        return reply.status is MessageStatus.STOPPED
    finally:
        opened.store.close()


def words_of(model: Path, num_tokens: int) -> str:
    """Return a text of about num_tokens tokens of a model."""
    encode = Tokenizer.from_file(str(model / "tokenizer.json")).encode
    words = "one two three four "
    return words * round(num_tokens / len(encode(words * 100).ids) * 100)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--tokens", type=int, default=4000)
    parser.add_argument("--load", type=int, default=4)
    args = parser.parse_args()
    rounds: list[Quit] = []
    with tempfile.TemporaryDirectory() as folder:
        model = args.model or build_tiny("qwen3_5", Path(folder) / "model")
        words = words_of(model, args.tokens)
        numbers = count()
        while len(rounds) < args.rounds:
            text = f"Chat {next(numbers)}. {words}"
            found = one_round(Path(folder) / "data", model.resolve(), text, args.load)
            if found is None:
                continue
            rounds.append(found)
            sys.stdout.write(f"{rounds[-1]}\n")
            sys.stdout.flush()
    hidden, gone = [one.hidden_s for one in rounds], [one.gone_s for one in rounds]
    figures = {
        "rounds": len(rounds),
        "hidden_s": {"median": statistics.median(hidden), "max": max(hidden)},
        "gone_s": {"median": statistics.median(gone), "max": max(gone)},
    }
    sys.stdout.write(json.dumps(figures) + "\n")
    return 0 if max(gone) <= _LIMIT_S else 1


if __name__ == "__main__":
    sys.exit(main())
