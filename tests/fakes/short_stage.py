"""The program of a stage whose device has no memory left once a file says so.

    own_program("tests.fakes.short_stage", FILE, "stage")

The stage raises MLX's error for a failed allocation while its weights are read, if FILE contains
"loading", or in its next pass, if FILE contains "pass". It then writes the time of the error to the
file that raised_at() names. A real lack of memory ends the process on
Linux, because MLX's CPU allocator does not check for it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

from engine.config import EngineConfig
from engine.hosts import stage

_prepare = stage.prepare_libraries


def _prepare_and_plant(config: EngineConfig) -> None:
    _prepare(config)
    # Imports mlx, which must be imported after the libraries are prepared.
    from engine.pipeline import own  # noqa: PLC0415
    from engine.pipeline.follower import Follower  # noqa: PLC0415

    patch.object(own, "read_weights", _failing(own.read_weights, "loading")).start()
    run_pass = Follower._run_pass  # pyright: ignore[reportPrivateUsage]
    patch.object(Follower, "_run_pass", _failing(run_pass, "pass")).start()


def raised_at(file: Path) -> Path:
    """Return the path of the file with the time of the error, as time.monotonic() gives it."""
    return file.with_suffix(".at")


def _failing(function: Callable[..., Any], moment: str) -> Callable[..., Any]:
    file = Path(sys.argv[1])

    def call(*args: Any, **kwargs: Any) -> Any:
        if file.exists() and file.read_text(encoding="utf-8") == moment:
            raised_at(file).write_text(str(time.monotonic()), encoding="utf-8")
            raise RuntimeError("[malloc] Unable to allocate 1073741824 bytes.")
        return function(*args, **kwargs)

    return call


def main() -> int:
    """Run the stage. The first argument is FILE."""
    stage.prepare_libraries = _prepare_and_plant
    return stage.main(sys.argv[3:])
