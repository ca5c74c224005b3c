"""Interruptions of a download.

    QT_QPA_PLATFORM=offscreen python -m tests.benchmarks.downloads [--megabytes 300] [--times 100]

A file of random bytes comes from a Hub on this machine. It is interrupted at random moments: the
connection is cut, the child process or the whole program is killed, the program quits, the bytes
are wrong, or the disk is full. Then it must be equal byte for byte. A byte that was fetched twice
counts as fetched again. Only root can mount the small disk (tmpfs) that becomes full; without it
this kind is left out.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).parents[2]))

from app.hub.fetching import RESERVE_BYTES
from app.hub.values import DownloadState
from tests.fakes.hub_server import FakeHub, Fault, Repository, running_hub

REPO = "someone/Large-4bit"
CHUNK = 1 << 20
KINDS = ("kill", "kill child", "quit", "cut", "wrong bytes")
DISK_FULL = "disk full"
LAST_RUN = "last run"  # without an interruption: it fetches files with wrong bytes again
BYTES_PER_S = 40e6  # of the Hub
BALLAST = "ballast"  # file that takes all room on the small disk
PROGRAM = f"""
import sys, threading
from pathlib import Path
from app.hub.downloads import Downloads
from app.hub.values import DownloadState
ended = threading.Event()
queue = Downloads(Path(sys.argv[1]), lambda: queue.all and
    queue.all[0].state in (DownloadState.DONE, DownloadState.FAILED) and ended.set())
sys.stdin.readline()
queue.add({REPO!r})
threading.Thread(target=lambda: (sys.stdin.readline(), ended.set()), daemon=True).start()
ended.wait()
state = queue.all[0].state.value
queue.close()
print(state)
"""


class Program:
    """A program with a queue of downloads, which can be killed."""

    def __init__(self, queue_file: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(queue_file)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._tell()

    def _tell(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def quit(self) -> None:
        self._tell()
        self.process.wait()

    def kill_child(self) -> None:
        for child in psutil.Process(self.process.pid).children():
            child.kill()
        self.quit()

    def wait(self) -> str:
        """Wait until the download has ended. Return its state."""
        assert self.process.stdout is not None
        return self.process.stdout.read().strip()


@contextmanager
def small_disk(folder: Path, num_bytes: int) -> Generator[bool]:
    """Mount a disk in memory at a folder. Yield True if that is possible."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={num_bytes}", "tmpfs", str(folder)]
    try:
        is_mounted = not subprocess.run(command, check=False, capture_output=True).returncode
    except OSError:
        is_mounted = False
    try:
        yield is_mounted
    finally:
        if is_mounted:
            subprocess.run(["umount", str(folder)], check=True)


def fill(folder: Path) -> None:
    """Take all room on the disk of a folder."""
    with Path(folder, BALLAST).open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(CHUNK))


def interrupted(num_bytes: int, times: int, seed: int) -> tuple[Counter[str], Counter[str], bool]:
    """Download a file with interruptions.

    Returns:
        The number of interruptions by kind, the bytes that were fetched again after each kind, and
        True if the file arrived complete and equal.
    """
    chance = random.Random(seed)
    content = b"".join(chance.randbytes(1_000_000) for _ in range(num_bytes // 1_000_000))
    kinds, again = Counter[str](), Counter[str]()
    room = num_bytes + RESERVE_BYTES + 64 * CHUNK
    with (
        tempfile.TemporaryDirectory() as folder,
        small_disk(Path(folder), room) as is_small,
        running_hub() as hub,
    ):
        names = (*KINDS, DISK_FULL) if is_small else KINDS
        os.environ.update(HF_HOME=folder, HF_ENDPOINT=hub.address)
        # Slower than the client, so that few bytes wait in the buffers of the system.
        hub.bytes_per_s = BYTES_PER_S
        hub.repositories[REPO] = Repository({"config.json": b"{}", "model.safetensors": content})
        queue_file = Path(folder, "downloads.json")
        lost = 0
        for _ in range(times):
            kind = chance.choice(names)
            interrupt(hub, queue_file, kind, chance, num_bytes // times)
            kinds[kind] += 1
            stored = sum(path.stat().st_size for path in Path(folder).rglob("*.incomplete"))
            lost, before = hub.sent_bytes - stored, lost
            again[kind] += lost - before
        again[LAST_RUN] = -lost
        state = Program(queue_file).wait()
        found = [*Path(folder).rglob("snapshots/*/model.safetensors")]
        equal = (
            bool(found)
            and hashlib.sha256(found[0].read_bytes()).digest() == hashlib.sha256(content).digest()
        )
        assert state == DownloadState.DONE.value, state
        again[LAST_RUN] += hub.sent_bytes - num_bytes
        return kinds, again, equal


def interrupt(hub: FakeHub, queue_file: Path, kind: str, chance: random.Random, step: int) -> None:
    """Start the program, and interrupt it after about `step` bytes."""
    enough = threading.Event()
    until = hub.sent_bytes + chance.randint(step // 4, step)

    def look() -> None:
        if hub.sent_bytes >= until:
            enough.set()

    hub.before_piece = look
    if kind == "cut":
        hub.faults = [Fault("GET /cdn/", cut_after=step // 2)]
    elif kind == "wrong bytes":
        hub.faults = [Fault("GET /cdn/", spoil=True)]
    program = Program(queue_file)
    enough.wait(30)
    if kind == DISK_FULL:
        hub.bytes_per_s = 200e3  # the download waits until the disk is full
        fill(queue_file.parent)
        hub.bytes_per_s = BYTES_PER_S
        state = program.wait()
        assert state == DownloadState.FAILED.value, state
        (queue_file.parent / BALLAST).unlink()
        return
    ends: dict[str, Callable[[], None]] = {"kill": program.kill, "kill child": program.kill_child}
    ends.get(kind, program.quit)()
    hub.faults = []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=300)
    parser.add_argument("--times", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    num_bytes = args.megabytes * 1_000_000
    kinds, again, equal = interrupted(num_bytes, args.times, args.seed)
    print("| interruption | times | bytes fetched again, a time |")
    print("|---|---|---|")
    for kind, times in sorted(kinds.items()):
        print(f"| {kind} | {times} | {again[kind] / times / 1e6:.2f} MB |")
    print(
        f"| all | {args.times} | {sum(again[kind] for kind in kinds) / args.times / 1e6:.2f} MB |"
    )
    print(f"Damaged files that were fetched again at the end: {again[LAST_RUN] / 1e6:.1f} MB")
    print(f"equal byte for byte: {equal}")


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    main()
