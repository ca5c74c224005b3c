"""Calls of the Hub's process against a Hub that lies: `python -m tests.soak hub`."""

from __future__ import annotations

import os
import random
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import psutil

from app.hub.failures import FailureKind, HubError
from app.hub.process import HubCall, StoppedError
from tests.app.hub.lies import COMMIT, KINDS
from tests.fakes.lying_hub import REPO, HonestHub, lying_hub

_MAX_MEMORY = 300_000_000  # bytes of memory that a call may use
_SILENCE_S = 10  # seconds of silence after which a call is ended here, instead of 60
_SHOWN_S = 3.0  # seconds after which a call that reports progress is cancelled
_MAX_WAIT_S = 30.0  # seconds that a call may take here


@dataclass(slots=True)
class Tally:
    """The results of the lies of one kind."""

    ends: Counter[str] = field(default_factory=Counter[str])
    memory_bytes: int = 0
    longest_s: float = 0.0
    num_outside: int = 0  # lies after which a file outside the cache was another


class Home:
    """A home folder with a cache and with files beside it.

    Args: folder: an empty folder. has_links: if True, links of the cache lead to these files.
    """

    def __init__(self, folder: Path, *, has_links: bool) -> None:
        self.cache = folder / "home" / "hub"
        self.outside = folder
        self.cache.mkdir(parents=True)
        for path in (folder / ".zshenv", folder / "mine" / "kept.txt", folder / "home" / "token"):
            path.parent.mkdir(exist_ok=True)
            path.write_text("mine")
        if has_links:
            self._plant_links()
        self._before = self._contents()

    def is_unchanged(self) -> bool:
        """Return True if all files outside the cache are as before, and no other file is there."""
        return self._contents() == self._before

    def is_inside(self, folder: Path) -> bool:
        """Return True for a folder that is in the cache with all its files, also behind links."""
        paths = (folder, *folder.rglob("*"))
        return folder.is_dir() and all(
            path.resolve().is_relative_to(self.cache.resolve()) for path in paths
        )

    def _plant_links(self) -> None:
        blobs = self.cache / f"models--{REPO.replace('/', '--')}" / "blobs"
        blobs.mkdir(parents=True)
        files = HonestHub().info["siblings"]
        assert isinstance(files, list)
        for row in cast("list[dict[str, Any]]", files):
            digest = row["lfs"]["sha256"] if "lfs" in row else row["blobId"]
            for name in (digest, f"{digest}.rejoinder.incomplete"):
                (blobs / name).symlink_to(self.outside / ".zshenv")

    def _contents(self) -> dict[str, bytes]:
        return {
            str(path): path.read_bytes()
            for path in self.outside.rglob("*")
            if path.is_file() and not path.is_relative_to(self.cache)
        }


def random_call(chance: random.Random, folder: Path) -> dict[str, str]:
    """Return the name and the arguments of a random call. It may write into a folder."""
    chosen = chance.choice(("", "", "", "model.safetensors", "owned.gguf", "../owned.gguf"))
    revision = chance.choice(("", "", "main", COMMIT, "../main"))
    return chance.choice((
        {"call": "download", "repo_id": REPO, "chosen": chosen, "revision": revision},
        {"call": "download", "repo_id": REPO},
        {"call": "download", "repo_id": REPO},
        {"call": "details", "repo_id": REPO},
        {"call": "search", "words": REPO},
        {"call": "search", "words": "tiny"},
        {
            "call": "header",
            "repo_id": REPO,
            "revision": COMMIT,
            "path": "model.safetensors",
            "target": str(folder / "header"),
        },
    ))  # fmt: skip


def lie(kind: str, seed: int, folder: Path, tally: Tally) -> None:
    """Make one call to a Hub that lies, and add its end to a tally."""
    chance = random.Random(f"{kind} {seed}")
    home = Home(folder, has_links=chance.random() < 0.3)
    with lying_hub(KINDS[kind](chance, folder)) as hub:
        request = random_call(chance, home.cache)
        request_name = request.pop("call")
        call = HubCall(request_name, **request, endpoint=hub.address)
        call.max_silence_s = _SILENCE_S
        started = time.monotonic()

        def progress(_: Mapping[str, object]) -> None:
            # A slow answer that is shown may take any time, and the user can cancel it.
            if time.monotonic() - started > _SHOWN_S:
                call.cancel()

        ended = threading.Event()
        watch = threading.Thread(target=_watch, args=(call, ended, tally))
        watch.start()
        try:
            result = call.run(progress)
            end = "done"
            if request_name == "download":
                tally.num_outside += not home.is_inside(Path(result["folder"]))
        except StoppedError:
            end = "shown, cancelled"
        except HubError as error:
            failure = error.failure
            is_known = failure.kind is not FailureKind.OTHER
            end = failure.kind.value if is_known else f"other: {failure.detail}"
        tally.longest_s = max(tally.longest_s, time.monotonic() - started)
        ended.set()
        watch.join()
    tally.ends[end] += 1
    if not home.is_unchanged():
        tally.num_outside += 1


def _watch(call: HubCall, ended: threading.Event, tally: Tally) -> None:
    while not ended.wait(0.01):
        process = call._process  # pyright: ignore[reportPrivateUsage]
        if process is not None:
            try:
                used = psutil.Process(process.pid).memory_info().rss
            except psutil.Error:
                continue
            tally.memory_bytes = max(tally.memory_bytes, used)


def lie_often(folder: Path, number: int) -> bool:
    """Make `number` calls to a Hub with lies of each kind. Print the results."""
    os.environ.update(HF_HOME=str(folder), HF_HUB_DOWNLOAD_TIMEOUT="2")
    for name in ("HF_TOKEN", "HF_ENDPOINT", "HF_HUB_CACHE"):
        os.environ.pop(name, None)
    held = True
    for kind in KINDS:
        tally = Tally()
        for seed in range(number):
            home = folder / f"{kind}-{seed}"
            home.mkdir()
            os.environ["HF_HOME"] = str(home / "home")
            lie(kind, seed, home, tally)
        held &= not tally.num_outside
        held &= tally.memory_bytes <= _MAX_MEMORY and tally.longest_s <= _MAX_WAIT_S
        print(
            f"{kind:<9} {number} lies  outside {tally.num_outside}"
            f"  memory {tally.memory_bytes / 1e6:.0f} MB  longest {tally.longest_s:.1f} s"
            f"  {dict(tally.ends)}",
            flush=True,
        )
    return held
