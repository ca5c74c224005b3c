"""New chats in a folder with documents: what they read, and how soon they answer.

    python -m tests.benchmarks.folder_documents [--tokens 60000] [--chats 20] [--check]

Prints a JSON line for each of two tiny models: one with recurrent layers, and one with attention only.
Five documents are read in idle time. Then new chats are begun in the folder, each with a second question,
and the engine is started again after half of them.

    read_most, redo, replayed   tokens that new chats fed; read_most is the highest number of one chat
    ratio                       time to the first token of new chats, divided by that of second questions:
                                medians of pairs, without the first chat after the start from disk
    disk_ms, first_ms           of the first chat after that start: reading its state, and its first token
    sixth                       tokens that a chat reads after a sixth document was added, less those of
                                the document
    half                        new chats from disk, with memory for half of what was cached with one chat:
                                the documents and the chat's live cache
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

from app.cli.client import EngineRuns, load_model
from app.cli.player import ScriptPlayer
from app.cli.script import parse_step
from app.cli.step_report import StepReport
from engine.config import EngineConfig
from tests.fakes.tiny_model import CONFIGS, Template, build_tiny

CONTEXT = 131_072
LONG = {"max_position_embeddings": CONTEXT}
MODELS = {
    "qwen3_5": {
        **CONFIGS["qwen3_5"],
        "text_config": {**CONFIGS["qwen3_5"]["text_config"], **LONG},
    },
    "llama": {**CONFIGS["llama"], **LONG},
}
LINE = "The boat of the fox is small and brown, and the list has a number of words. "
# First letters of the questions. They differ, so that two chats have only the documents in common.
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
CHARS_PER_TOKEN = 2.69  # of LINE, in the vocabulary of the tiny models


class Bench:
    """A script on a model, with a folder of state that lasts from one engine to the next."""

    def __init__(self, model: Path, folder: Path, budget: int, *, check: bool) -> None:
        config = EngineConfig(
            cache_budget_bytes=budget,
            idle_work=False,
            saves_battery=False,
            disk_folder=folder / "state",
            disk_rest_s=0.0,
            blocked_after_s=24 * 3600.0,
        )
        self._folder = folder
        self.engines = EngineRuns(config)
        client = self.engines.start()
        load_model(client, model, lambda _: None)
        self.player = ScriptPlayer(client, model, check=check, restart=self.engines.start)

    def play(self, op: str, **fields: object) -> list[StepReport]:
        return list(self.player.play(parse_step(json.dumps({"op": op, **fields}))))

    def add(self, first: int, count: int, num_chars: int) -> None:
        """Add documents to the folder, and queue their reading."""
        paths = [self._folder / f"{number}.txt" for number in range(first, first + count)]
        for number, path in enumerate(paths, first):
            path.write_text((f"{number} {LINE}" * (num_chars // len(LINE) + 1))[:num_chars])
        self.play("documents", folder="Work", files=list(map(str, paths)))

    def ask(self, chat: str, number: int, **fields: object) -> StepReport:
        text = f"{LETTERS[number]} is the question about the boat?"
        (report,) = self.play("send", chat=chat, text=text, max_tokens=4, **fields)
        assert report.holds, report
        return report


def measure(
    model: Path, folder: Path, num_tokens: int, num_chats: int, *, check: bool
) -> dict[str, object]:
    bench = Bench(model, folder, 8 << 30, check=check)
    with bench.engines:
        num_chars = round(num_tokens / 5 * CHARS_PER_TOKEN)
        bench.add(0, 5, num_chars)
        start = time.perf_counter()
        bench.play("idle")
        reading_s = time.perf_counter() - start
        firsts, seconds = [bench.ask("0", 0, folder="Work")], [bench.ask("0", 1)]
        for number in range(1, num_chats):
            if number == num_chats // 2:
                bench.play("restart")
            firsts.append(bench.ask(f"{number}", number, folder="Work"))
            seconds.append(bench.ask(f"{number}", number))
        from_disk = firsts[num_chats // 2]
        pairs = [
            first.ttft_ms / second.ttft_ms
            for first, second in zip(firsts, seconds, strict=True)
            if first is not from_disk
        ]
        bench.add(5, 1, num_chars)
        sixth = bench.ask("sixth", num_chats, folder="Work")
        num_bytes = firsts[0].cache_bytes
    return {
        "model": model.name,
        "documents": list(firsts[0].document_tokens),
        "reading_s": round(reading_s, 1),
        "chats": len(firsts),
        **_fed(firsts),
        "ratio": round(statistics.median(pairs), 3),
        "first_ms": round(from_disk.ttft_ms),
        "disk_ms": round(from_disk.disk_ms),
        "restored_disk": from_disk.restored_disk,
        "sixth": sixth.read - sixth.document_tokens[-1],
        "half": _half(model, folder, num_chars, num_bytes // 2, check=check),
    }


def _half(
    model: Path, folder: Path, num_chars: int, budget: int, *, check: bool
) -> dict[str, object]:
    """Begin chats with the same documents in an engine that has memory for half of their state."""
    bench = Bench(model, folder, budget, check=check)
    with bench.engines:
        bench.add(0, 5, num_chars)
        reports = [bench.ask(f"half {number}", -1 - number, folder="Work") for number in range(4)]
    return {
        **_fed(reports),
        "restored_disk": [one.restored_disk for one in reports],
        "first_ms": [round(one.ttft_ms) for one in reports],
    }


def _fed(reports: list[StepReport]) -> dict[str, object]:
    return {
        "read_most": max(one.read for one in reports),
        "redo": sum(one.redo for one in reports),
        "replayed": sum(one.replayed for one in reports),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tokens", type=int, default=60_000, help="of all documents, about")
    parser.add_argument("--chats", type=int, default=20)
    parser.add_argument("--check", action="store_true", help="compare each answer with cold runs")
    parser.add_argument("--models", nargs="*", default=list(MODELS), choices=list(MODELS))
    options = parser.parse_args()
    for name in options.models:
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            model = build_tiny(name, place / name, Template.KEEPING, MODELS)
            measured = measure(model, place, options.tokens, options.chats, check=options.check)
            print(json.dumps(measured), flush=True)


if __name__ == "__main__":
    main()
