"""A disk that becomes full while cached state is written to it, and checks of what is left there."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tests.fakes.tiny_model import Template, build_tiny
from tests.oracle.disk_kills import KINDS, Step, answering, play_checked, steps_of

DISK_BYTES = 64 << 20
LATEST_S = 0.6  # longest time from the first answer until the disk is full


def fill_disks(folder: Path, number: int) -> bool:
    """Fill the disk while a process answers. Return True if every answer was right.

    Another process then plays the script once more on the same folder, and compares each answer with
    the bare model. In half of the rounds the disk has space again by then. Needs root on Linux, for
    a small file system.
    """
    rng = random.Random(1)
    models = {kind: build_tiny(kind, folder / kind, Template.KEEPING) for kind in KINDS}
    held = True
    restored = full = 0
    for at in range(number):
        kind = KINDS[at % len(KINDS)]
        with _small_disk(folder / f"disk-{at}") as disk:
            filler = disk / "filler"
            answers = _fill(models[kind], disk, steps_of(at), filler, rng.uniform(0, LATEST_S))
            full += filler.exists()
            if at // len(KINDS) % 2:
                filler.unlink(missing_ok=True)
            status, reports = play_checked(models[kind], disk / "data", steps_of(at))
        wrong = status != 0 or any(report["replay_difference"] for report in reports)
        is_right = not wrong and len(reports) == answers
        held &= is_right
        restored += sum(int(report["restored_disk"]) for report in reports)
        if not is_right:
            print(f"{kind} WRONG in round {at}: status {status}", flush=True)
    print(f"{full} full disks of {number}, {restored} tokens restored from what was written before")
    return held and restored > 0 and full > 0


@contextmanager
def _small_disk(folder: Path) -> Generator[Path]:
    folder.mkdir()
    size = f"size={DISK_BYTES}"
    subprocess.run(["mount", "-t", "tmpfs", "-o", size, "rejoinder", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def _fill(model: Path, disk: Path, steps: list[Step], filler: Path, seconds: float) -> int:
    """Play steps, and fill the disk `seconds` after the first answer. Return the number of answers."""
    with answering(model, disk / "data", steps) as process:
        assert process.stdout is not None
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            _write_until_full(filler)
        answers = 1 + len(process.stdout.readlines())
    assert process.returncode == 0
    return answers


def _write_until_full(path: Path) -> None:
    block = bytes(4096)
    with path.open("wb", buffering=0) as file:
        try:
            while file.write(block):
                pass
        except OSError:
            return
