"""Delays of the main thread while several answers stream into the real window.

    python -m tests.benchmarks.many_chats [--model DIR] [--chats 4] [--seconds 20]
    python -m tests.benchmarks.many_chats --clients 8 [--chats 1] [--seconds 20]
    python -m tests.benchmarks.many_chats --writing [--chats 1] [--seconds 20]
    python -m tests.benchmarks.many_chats --download [--chats 2] [--seconds 10] [--pairs 6]

A precise timer of 5 ms runs on the main thread while all answers run. Prints one JSON line with the
time between its ticks. Without --model the model is a tiny random Qwen3.5, the worst case: nearly
all of a step is Python code, and the engine thread and the main thread share the interpreter. For a
real model on Linux set LD_PRELOAD=libopenblas.so.0.

With --clients, the server of the window answers as many clients too. They run in a process of their own.

With --writing, another thread writes cached state to disk all the time, in records of 32 MB, as the
disk tier does.

With --download, the same answers run through intervals with and without a download, in turn. A model
is downloaded from a Hub on this machine at full speed, in two more processes. Each interval with a
download is compared with the mean of the two intervals beside it. The line has the median of these
ratios and all of them. Answers that end within an interval are replaced, and the interval is dropped.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import mlx.core as mx
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from app.conversation.tree import Setup
from app.hub.values import DownloadState
from app.widgets.commands import CommandId
from engine.cache.disk.record import RecordKey, RecordKind, StoredArray, write_record
from engine.cache.feeding import Feed
from engine.cache.radix import TokenRun
from tests.benchmarks.bench_transcript import Gaps, wait_ms
from tests.fakes.real_window import RealWindow
from tests.fakes.tiny_model import Template, build_tiny

REPO = "someone/Large-4bit"
MEGABYTES = 2_000
MAX_TOKENS = 30_000  # of an answer
RECORD_BYTES = 32 << 20
LOOK_MS = 20  # interval at which the number of running answers is checked


def endless_model(folder: Path) -> Path:
    """Build a tiny model whose answers do not end: the logit of its end token is always 0."""
    build_tiny("qwen3_5", folder, Template.KEEPING)
    config = json.loads((folder / "generation_config.json").read_text(encoding="utf-8"))
    file = str(folder / "model.safetensors")
    weights = mx.load(file)
    assert isinstance(weights, dict)
    for name, weight in weights.items():
        if name.endswith(("lm_head.weight", "embed_tokens.weight")):
            weight[config["eos_token_id"]] = 0
    mx.save_safetensors(file, weights, metadata={"format": "mlx"})  # pyright: ignore[reportUnknownMemberType]
    return folder


def start_answers(real: RealWindow, num_chats: int, seed: int) -> None:
    """Start `num_chats` long answers, and wait until all of them run."""
    for attempt in range(20):
        for number in range(num_chats):
            real.window.commands[CommandId.NEW_CHAT].trigger()
            setup = Setup(temperature=0.0, max_tokens=MAX_TOKENS)
            real.core.chat.set_setup(real.current, setup)
            real.type(f"{seed} {attempt} {number}: tell me a long story about a fox.")
            QTest.keyClick(real.edit, Qt.Key.Key_Return)
        while real.core.turns.live and real.num_at_once < num_chats:
            wait_ms(LOOK_MS)
        if real.num_at_once == num_chats:
            break
        stop_answers(real)


def stop_answers(real: RealWindow) -> None:
    for conversation in real.core.library.listed.unarchived:
        real.core.chat.stop(conversation.conversation_id)
    while real.core.turns.live:
        wait_ms(LOOK_MS)


def rate_of(real: RealWindow, num_chats: int, seconds: float) -> float | None:
    """Return the tokens per second of all answers, or None if one of them ended."""
    tokens, start = num_tokens(real), time.perf_counter()
    while time.perf_counter() - start < seconds:
        wait_ms(LOOK_MS)
        if real.num_at_once < num_chats:
            return None
    return (num_tokens(real) - tokens) / (time.perf_counter() - start)


def compare(
    real: RealWindow, *, num_chats: int, seconds: float, num_pairs: int
) -> dict[str, object]:
    """Return the decode rate beside a download, as ratios to the intervals before and after it."""
    ratios: list[float] = []
    plain: list[float] = []
    fetched = seed = 0
    while len(ratios) < num_pairs:
        seed += 1
        start_answers(real, num_chats, seed)
        before = rate_of(real, num_chats, seconds)
        while before is not None and len(ratios) < num_pairs:
            start_download(real)
            done = real.core.hub.downloads[0].done_bytes
            beside = rate_of(real, num_chats, seconds)
            last = real.core.hub.downloads[0]
            assert last.state is DownloadState.RUNNING, "the file is too small"
            real.core.hub.cancel(REPO)
            after = rate_of(real, num_chats, seconds)
            if beside is None or after is None:
                break
            fetched += last.done_bytes - done
            plain += [before, after]
            ratios.append(beside / ((before + after) / 2))
            before = after
        stop_answers(real)
    return {
        "chats": num_chats,
        "seconds": seconds,
        "tok_s": round(statistics.median(plain)),
        "megabytes_s": round(fetched / len(ratios) / seconds / 1e6),
        "ratio": round(statistics.median(ratios), 3),
        "ratios": [round(ratio, 3) for ratio in ratios],
    }


def measure(real: RealWindow, *, num_chats: int, seconds: float) -> dict[str, object]:
    """Return the times between ticks on the main thread while `num_chats` answers run at once."""
    start_answers(real, num_chats, 0)
    gaps = Gaps()
    tokens = num_tokens(real)
    start = time.perf_counter()
    while real.num_at_once == num_chats and time.perf_counter() - start < seconds:
        wait_ms(LOOK_MS)
    gaps.stop()
    measured = time.perf_counter() - start
    rate = (num_tokens(real) - tokens) / measured
    return {
        "chats": num_chats,
        "seconds": round(measured, 1),
        "tok_s": round(rate),
        **gaps.figures(),
    }


def num_tokens(real: RealWindow) -> int:
    """Return the number of tokens of the running answers."""
    return sum(live.num_tokens for live in real.core.turns.live.values())


def start_download(real: RealWindow) -> None:
    """Start the download of the large file, and wait for its first bytes."""
    real.core.hub.download(REPO)
    while real.core.hub.downloads[0].done_bytes == 0:
        wait_ms(LOOK_MS)


class Writing:
    """A thread that writes records until it is stopped."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._is_over = False
        self.num_bytes = 0
        self._thread = threading.Thread(target=self._write)
        self._thread.start()

    def stop(self) -> None:
        self._is_over = True
        self._thread.join()

    def _write(self) -> None:
        state = StoredArray("U8", (RECORD_BYTES,), memoryview(os.urandom(RECORD_BYTES)))
        number = 0
        while not self._is_over:
            run = TokenRun((number % 8,), (Feed(0, 1, False),))
            key = RecordKey("model", RecordKind.KV, "", run)
            self.num_bytes += write_record(self._folder, key, {}, {"0": state})
            number += 1


@contextmanager
def clients(real: RealWindow, num_clients: int) -> Generator[None]:
    """Let a process with so many clients ask the server of the window for long answers."""
    server = real.core.server
    real.core.preferences.change(server_on=True, server_port=0, server_needs_key=False)
    while not server.state.url:
        assert server.state.problem is None, server.state.problem
        wait_ms(LOOK_MS)
    command = [sys.executable, "-m", "tests.benchmarks.server", "--ask", server.state.url]
    command += ["--clients", str(num_clients), "--tokens", str(MAX_TOKENS)]
    asking = subprocess.Popen(command)
    try:
        while server.num_open < num_clients:
            wait_ms(LOOK_MS)
        yield
        assert server.num_open == num_clients, "an answer has ended"
    finally:
        asking.kill()
        asking.wait()


@contextmanager
def large_file(home: Path) -> Generator[None]:
    """Serve a large file from a Hub in a process of its own."""
    command = [sys.executable, "-P", "-m", "tests.fakes.hub_server", REPO, str(MEGABYTES)]
    hub = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert hub.stdout is not None
    os.environ.update(HF_HOME=str(home), HF_ENDPOINT=hub.stdout.readline().strip())
    try:
        yield
    finally:
        hub.communicate()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", type=Path)
    parser.add_argument("--chats", type=int, default=4)
    parser.add_argument("--clients", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--download", action="store_true")
    parser.add_argument("--writing", action="store_true")
    parser.add_argument("--pairs", type=int, default=6)
    args = parser.parse_args()
    app = QApplication(sys.argv[:1])
    with tempfile.TemporaryDirectory() as temporary:
        data_dir = Path(temporary)
        model = args.model or endless_model(data_dir / "m")
        with closing(RealWindow(data_dir)) as real:
            real.launch(model)
            if args.download:
                with large_file(data_dir / "hf"):
                    row = compare(
                        real, num_chats=args.chats, seconds=args.seconds, num_pairs=args.pairs
                    )
            else:
                writing = Writing(data_dir) if args.writing else None
                with clients(real, args.clients) if args.clients else nullcontext():
                    row = measure(real, num_chats=args.chats, seconds=args.seconds)
                row["clients"] = args.clients
                if writing is not None:
                    writing.stop()
                    row["written_megabytes"] = round(writing.num_bytes / 1e6)
    sys.stdout.write(json.dumps(row) + "\n")
    del app
    return 0


if __name__ == "__main__":
    sys.exit(main())
