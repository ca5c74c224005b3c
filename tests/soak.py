"""The long runs: `python -m tests.soak [promise] [templates] [starts] [kills]`, all by default.

promise  the full promise script (8 chats x 4 turns and what follows) on every tiny model and on the
         starter model, each step held to the bare model
templates  8 chats x 6 turns behind every real Qwen template, without and with idle work
starts   fifty starts and ends of the engine in every state
kills    thirty kill -9 of the app while it streams an answer
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from app.local_models import LocalModels
from tests.e2e.test_kill import kill_often
from tests.engine.test_engine import PROGRAM
from tests.fakes.tiny_model import CONFIGS, Template, build_tiny
from tests.oracle.scripts import promise_script
from tests.oracle.template_table import template_table

STATES = ("starting", "loading", "answering", "finished")


def promise(folder: Path) -> bool:
    held = True
    for name in CONFIGS:
        for template in Template:
            model = build_tiny(name, folder / f"{name}-{template}", template)
            thinking = template is Template.THINKING
            steps = promise_script(chats=8, turns=4, seed=1, reasoning=thinking)
            held &= play(f"{name} {template}", steps, model, "--reference-blas", keeps=not thinking)
    starter = LocalModels(folder).make_starter(lambda _: None)
    steps = promise_script(chats=3, turns=2, seed=1, reasoning=False)
    return held & play("SmolLM2", steps, starter, keeps=True)


def play(
    title: str, steps: list[dict[str, object]], model: Path, *options: str, keeps: bool
) -> bool:
    """Through the command line, as anyone would; one line of result."""
    command = [sys.executable, "-m", "app", "bench", "script", "-", "--check", "--json"]
    started = time.monotonic()
    ended = subprocess.run(
        [*command, "--model", str(model), "--data-dir", str(model.parent / "data"), *options],
        input="\n".join(json.dumps(step) for step in steps),
        capture_output=True,
        text=True,
        check=False,
    )
    reports = [json.loads(line) for line in ended.stdout.splitlines()]
    seen: set[str] = set()
    redo = replayed = largest = 0
    for report in reports:
        if report["chat"] in seen:
            redo += report["redo"]
            replayed += report["replayed"]
        seen.add(report["chat"])
        largest = max(largest, report["max_difference"])
    held = ended.returncode == 0 and redo == 0 and not (keeps and replayed)
    print(
        f"{title:<24} {'held' if held else 'BROKEN'}  steps {len(reports)}  redo {redo}"
        f"  replayed {replayed}  largest difference {largest:.1e}"
        f"  {time.monotonic() - started:.0f} s  {ended.stderr.strip()[-300:]}",
        flush=True,
    )
    return held


def starts(folder: Path) -> bool:
    model = build_tiny("qwen3_5", folder / "model", Template.KEEPING)
    statuses: list[int] = []
    for number in range(50):
        state = STATES[number % len(STATES)]
        command = [sys.executable, "-c", PROGRAM, state, str(model)]
        statuses.append(subprocess.run(command, check=False, timeout=300).returncode)
    print(f"starts and ends with status 0: {statuses.count(0)} of {len(statuses)}")
    return not any(statuses)


def kills(folder: Path) -> bool:
    model = build_tiny("lfm2", folder / "model", Template.KEEPING)
    survived = kill_often(folder / "data", model, rounds=30)
    print(f"kill -9 while streaming survived: {survived} of 30")
    return True


def main() -> int:
    runs: dict[str, Callable[[Path], bool]] = {
        "promise": promise,
        "templates": template_table,
        "starts": starts,
        "kills": kills,
    }
    held = True
    for name in sys.argv[1:] or runs:
        with tempfile.TemporaryDirectory() as folder:
            held &= runs[name](Path(folder))
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
