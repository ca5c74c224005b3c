"""The table of the hostile folders and files: kind, what a person reads, seconds and memory.

    python -m tests.hostile.table [--kinds WORD ...]
    python -m tests.hostile.table --mutations 1000

Each case runs in a process of its own, which a signal ends after 60 s. The memory is the highest of
this process, in MB; 150 MB of it are Python and its libraries. The worker process has a limit of
its own.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from typing_extensions import override

from engine.problem import Problem
from engine.worker.process import shared_worker
from tests.fakes.tiny_model import Template, build_tiny
from tests.hostile.folders import FOLDERS, damaged, is_honest, trial
from tests.hostile.mutations import gguf_content, import_trial, mutated, weights_trial

_LIMIT_S = 60
_BAD = ("RAISES", "ENDS WITH", "NOT HONEST")


@dataclass(frozen=True, slots=True)
class Row:
    """The result and the costs of one case."""

    kind: str
    outcome: str
    seconds: float
    megabytes: float

    @override
    def __str__(self) -> str:
        return f"{self.kind[:44]:44} {self.seconds:6.1f} s {self.megabytes:6.0f} MB  {self.outcome}"


def in_process(kind: str, work: Callable[[], str]) -> Row:
    """Run work in a process of its own. Return its result and its costs."""
    reading, writing = os.pipe()
    started = time.monotonic()
    if (child := os.fork()) == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(_LIMIT_S)
        try:
            os.write(writing, work().encode(errors="replace"))
        except BaseException as error:  # noqa: BLE001 — an error is a result too
            os.write(writing, f"RAISES {error!r:.300}".encode())
        shared_worker().close()
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as results:
        outcome = results.read().decode()
    _, status, usage = os.wait4(child, 0)
    if status:
        outcome = f"ENDS WITH {signal.strsignal(status & 127)}"
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return Row(kind, outcome, time.monotonic() - started, usage.ru_maxrss / unit)


def sentence(problem: Problem | None) -> str:
    """Return what a person reads."""
    if problem is None:
        return "answers"
    return f"{'' if is_honest(problem) else 'NOT HONEST '}{problem.title} {problem.cause}"


def folder_outcome(source: Path, kind: str) -> str:
    """Load a damaged folder and ask it. Return "answers", or the sentence of the problem."""
    with tempfile.TemporaryDirectory() as place:
        return sentence(trial(damaged(source, Path(place), kind)))


def gguf_outcome(content: bytes) -> str:
    """Import a GGUF file and ask the model. Return "answers", or the sentence of the problem."""
    with tempfile.TemporaryDirectory() as place:
        return sentence(import_trial(Path(place), content))


def weights_outcome(source: Path, content: bytes) -> str:
    """Load a folder with other weights and ask the model."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(shutil.copytree(source, Path(place) / "model"))
        return sentence(weights_trial(folder, content))


def folder_rows(source: Path, words: list[str]) -> Iterator[Row]:
    """Try each hostile folder whose kind has one of the words."""
    for kind in FOLDERS:
        if any(word in kind for word in words):
            yield in_process(kind, partial(folder_outcome, source, kind))


def mutation_rows(source: Path, count: int) -> Iterator[Row]:
    """Try mutated files, of GGUF and of safetensors in turn."""
    weights, gguf = (source / "model.safetensors").read_bytes(), gguf_content()
    for seed in range(count):
        if seed % 2:
            work = partial(weights_outcome, source, mutated(weights, seed))
        else:
            work = partial(gguf_outcome, mutated(gguf, seed))
        yield in_process(f"{'safetensors' if seed % 2 else 'gguf'} {seed}", work)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kinds", nargs="+", default=[""], help="only kinds with these words")
    parser.add_argument("--mutations", type=int, help="try so many mutated files instead")
    args = parser.parse_args()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as place:
        source = Path(place) / "llama"
        in_process("source", lambda: str(build_tiny("llama", source, Template.KEEPING)))
        count: int | None = args.mutations
        tried = mutation_rows(source, count) if count else folder_rows(source, args.kinds)
        for row in tried:
            rows.append(row)
            print(row, flush=True)
    answers = sum(row.outcome == "answers" for row in rows)
    bad = sum(row.outcome.startswith(_BAD) for row in rows)
    print(
        f"{len(rows)} cases, {answers} answer, {bad} crash or have no honest sentence, longest"
        f" {max(row.seconds for row in rows):.1f} s,"
        f" most memory {max(row.megabytes for row in rows):.0f} MB"
    )


if __name__ == "__main__":
    main()
