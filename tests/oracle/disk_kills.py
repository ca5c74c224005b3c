"""Kills of a process that writes cached state to disk, and checks of what it left there."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.fakes.tiny_model import Template, build_tiny

KINDS = ("qwen3_5", "llama", "gemma3", "lfm2")
CHECK_EVERY = 10  # kills between two checks
CHATS = 4  # of one process
LATEST_S = 1.2  # longest time from the first answer to the kill

Step = dict[str, object]


def kill_writers(folder: Path, number: int) -> bool:
    """Kill processes with kill -9. Return True if every later answer was right.

    Each process answers in new chats, and writes their state. After ten kills, another process plays
    the ten scripts again on the same folder, and compares each answer with the bare model. What was
    written whole is restored, the rest is read.
    """
    rng = random.Random(1)
    held = True
    restored = 0
    for start in range(0, number, CHECK_EVERY):
        kind = KINDS[start // CHECK_EVERY % len(KINDS)]
        model = build_tiny(kind, folder / f"{kind}-{start}", Template.KEEPING)
        data = folder / f"data-{start}"
        rounds = [steps_of(at) for at in range(start, min(start + CHECK_EVERY, number))]
        for steps in rounds:
            _kill(model, data, steps, rng.uniform(0, LATEST_S))
        status, reports = play_checked(model, data, [step for steps in rounds for step in steps])
        differences = [report["replay_difference"] for report in reports]
        found = sum(report["restored_disk"] for report in reports)
        is_right = status == 0 and not any(differences)
        held &= is_right
        restored += found
        print(
            f"{kind:<10} {'right' if is_right else 'WRONG'}, {found} tokens from disk", flush=True
        )
    print(f"{number} kills, {restored} tokens restored from what they left")
    return held and restored > 0


def steps_of(number: int) -> list[Step]:
    """Return the script of one process: chats that no other process has."""
    steps: list[Step] = []
    for chat in range(CHATS):
        text = f"Number {number}, part {chat}: " + "the boat and the harbour " * 8
        reply = {"text": f"Answer {number} {chat} about boats and harbours."}
        steps.append({"op": "send", "chat": f"{number}-{chat}", "text": text, "reply": reply})
        steps.append({"op": "idle"})
    steps.append({"op": "restart"})
    return steps


def _command(model: Path, data: Path, *options: str) -> list[str]:
    command = [sys.executable, "-P", "-m", "app", "bench", "script", "-", "--json", *options]
    return [*command, "--model", str(model), "--data-dir", str(data)]


@contextmanager
def answering(model: Path, data: Path, steps: Sequence[Step]) -> Generator[subprocess.Popen[str]]:
    """Play steps in a process, and yield it after its first answer."""
    with subprocess.Popen(
        _command(model, data), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("\n".join(map(json.dumps, steps)))
        process.stdin.close()
        process.stdout.readline()
        yield process


def _kill(model: Path, data: Path, steps: Sequence[Step], seconds: float) -> None:
    """Kill a process `seconds` after its first answer."""
    with answering(model, data, steps) as process:
        with suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
        process.kill()


def play_checked(
    model: Path, data: Path, steps: Sequence[Step]
) -> tuple[int, list[dict[str, float]]]:
    ended = subprocess.run(
        _command(model, data, "--check"),
        input="\n".join(map(json.dumps, steps)),
        capture_output=True,
        text=True,
        check=False,
    )
    return ended.returncode, [json.loads(line) for line in ended.stdout.splitlines()]
