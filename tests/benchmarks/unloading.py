"""Measure what unloading a model gives back to the machine, and how soon.

    python -m tests.benchmarks.unloading [--model DIR]

The default model is SmolLM2 135M, which is unpacked into a temporary folder. The command prints the
bytes of MLX's arrays, of MLX's freed buffers, and of the process: before loading, with the model and
one cached chat, and after unloading. It fails if less than 95 % of the weights are free after 1 s.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import mlx.core as mx
import psutil

from app.cli.client import load_model
from app.paths import make_paths
from engine.config import EngineConfig
from engine.events import UnloadModel
from engine.local_models import LocalModels
from tests.fakes.asking import ask, user
from tests.fakes.inline_engine import InlineClient

_LEAST_SHARE = 0.95
_MOST_S = 1.0


@dataclass(frozen=True)
class MemoryUse:
    """Bytes of MLX's arrays, of the buffers that MLX keeps, and of the process."""

    arrays: int
    freed: int
    process: int

    @classmethod
    def now(cls) -> MemoryUse:
        memory = psutil.Process().memory_info().rss
        return cls(mx.get_active_memory(), mx.get_cache_memory(), memory)

    def row(self, name: str) -> str:
        numbers = (self.arrays, self.freed, self.process)
        return f"{name:<10}" + "".join(f"{number / 1e6:>12,.1f} MB" for number in numbers)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, help="a model folder (default: SmolLM2 135M)")
    model: Path | None = parser.parse_args().model
    with tempfile.TemporaryDirectory() as folder:
        path = model or LocalModels(make_paths(Path(folder))).make_starter(lambda _: None)
        return _measure(path)


def _measure(path: Path) -> int:
    client = InlineClient(EngineConfig(idle_work=False))
    before = MemoryUse.now()
    load_model(client, path, lambda _: None)
    assert client.core.model is not None
    weights = client.core.model.facts.weight_bytes
    ask(client, user("Hello there"), chat="A")
    loaded = MemoryUse.now()
    started = time.monotonic()
    client.send(UnloadModel())
    client.run_until_idle()
    seconds = time.monotonic() - started
    after = MemoryUse.now()
    print(f"{'':<10}{'arrays':>15}{'freed':>15}{'process':>15}")
    for name, use in (("before", before), ("loaded", loaded), ("unloaded", after)):
        print(use.row(name))
    arrays = (loaded.arrays - after.arrays) / weights
    process = (loaded.process - after.process) / weights
    print(f"{seconds * 1000:.0f} ms; arrays {arrays:.1%} and process {process:.1%} of the weights")
    return int(min(arrays, process) < _LEAST_SHARE or seconds > _MOST_S)


if __name__ == "__main__":
    sys.exit(main())
