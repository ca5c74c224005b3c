"""The work of a stage process, once its starter has given it a job. It imports mlx."""

from __future__ import annotations

import json
import os
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlx.core as mx
from typing_extensions import override

from engine.config import EngineConfig
from engine.core import run_core
from engine.errors import Failure, attempt
from engine.hosts.faults import PeerLostError
from engine.hosts.lines import LineKind, LineWriter
from engine.hosts.wire import encode
from engine.pipeline.job import EngineEnds, StageHost, StageJob, StageReady
from engine.pipeline.plan import plan_stages
from engine.pipeline.relay import StageLostError
from engine.pipeline.run import run_stage


class Process(StageHost):
    """The process around a stage: it reports with lines, and waits for the starter's `go`.

    Args:
        lines: standard output.
        progress: gets the number of passes.
        wakes: has one permit for each `go` line.
    """

    def __init__(
        self, lines: LineWriter, progress: Callable[[int], None], wakes: threading.Semaphore
    ) -> None:
        self._lines = lines
        self._progress = progress
        self._wakes = wakes

    @override
    def loading(self, done: int, total: int) -> None:
        self._lines.write(LineKind.LOADING, done=done, total=total)

    @override
    def ready(self, report: StageReady) -> None:
        self._lines.write(LineKind.READY, weight_bytes=report.weight_bytes)

    @override
    def passed(self, num_passes: int) -> None:
        self._progress(num_passes)

    @override
    def resting(self) -> None:
        pass

    @override
    def await_wake(self) -> bool:
        return self._wakes.acquire()

    @override
    def wake_others(self) -> None:
        self._lines.write(LineKind.WAKE)


def planned(folder: Path, free: list[int], config: EngineConfig) -> dict[str, Any]:
    """Return the fields of the `plan` line: the layers of each rank, or the problem.

    Args:
        folder: the model folder.
        free: bytes of memory that each rank can give, rank 0 first.
        config: the settings of the engine.
    """
    if config.on_cpu:
        mx.set_default_device(mx.Device(mx.cpu))
    plan = attempt("the plan of the stages", lambda: plan_stages(folder, free))
    if isinstance(plan, Failure):
        return {"problem": encode(plan.problem)}
    return {"layers": plan.layers, "bytes": [share.weight_bytes for share in plan.stages]}


def work(job: dict[str, Any], config: EngineConfig, host: Process, ends: EngineEnds | None) -> None:
    """Do the job of a stage, until the engine is shut down or the group is lost.

    Args:
        job: the fields of the `join` line.
        config: the settings of the engine.
        host: reports to the starter.
        ends: the commands and events of the engine, on rank 0.
    """
    layers = tuple(job["layers"])
    if len(layers) == 1:
        assert ends is not None
        run_core(config, ends.commands, ends.emit, ends.pulse)
        return
    with tempfile.NamedTemporaryFile("w", prefix="rejoinder-", suffix=".json") as file:
        json.dump(job["addresses"], file)
        file.flush()
        os.environ.update(MLX_RANK=str(job["rank"]), MLX_HOSTFILE=file.name)
        stage = StageJob(rank=job["rank"], layers=layers, folder=Path(job["path"]), config=config)
        try:
            run_stage(stage, host, ends)
        except Exception as error:
            if _is_loss(error):
                raise PeerLostError(str(error)) from error
            raise


def _is_loss(error: BaseException | None) -> bool:
    """Return whether an error, or its cause, is that of a lost or missing peer."""
    if error is None:
        return False
    words = str(error)
    is_of_ring = "[ring]" in words and ("lost" in words or "connect" in words)
    return is_of_ring or isinstance(error, StageLostError) or _is_loss(error.__cause__)
