"""Run one stage in this process: see job.py for the seam to the process around it."""

# mlx.core.distributed has few type annotations.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import mlx.core as mx

from engine.catalog.model_config import read_config
from engine.chat.pictures import PictureTokens
from engine.config import EngineConfig
from engine.core import EngineCore
from engine.errors import ModelFolderError, is_out_of_memory
from engine.memory import cache_budget, fit_to_weights, limit_memory, spare_bytes
from engine.models.abilities import Abilities, AbilityRecords, FasterWays, key_of
from engine.models.loader import usable_card
from engine.models.opening import StageMemory, UntestedModel
from engine.pipeline.follower import Follower, can_merge_rows
from engine.pipeline.job import EngineEnds, StageHost, StageJob, StageReady
from engine.pipeline.last_stage import LastStage
from engine.pipeline.lines import GroupLine
from engine.pipeline.messages import Op
from engine.pipeline.own import OwnLayers, OwnPart, load_own_part, require_exact
from engine.pipeline.relay import Relay


def run_stage(job: StageJob, host: StageHost, engine: EngineEnds | None = None) -> None:
    """Form the group, load the own layers, and work until the end.

    Args:
        job: the work of the stage.
        host: the process around the stage.
        engine: the ends of the engine. Required on rank 0, and not used on other ranks.

    Raises:
        EngineError: the own part of the model cannot be loaded; the message is for the user.
        Exception: the group was lost, or the stage failed. The process must end.
    """
    if job.config.on_cpu:
        mx.set_default_device(mx.Device(mx.cpu))
    try:
        group = mx.distributed.init(strict=True, backend=job.backend)
        if (group.rank(), group.size()) != (job.rank, job.size):
            raise ValueError(f"the group has rank {group.rank()} of {group.size()} here")
        if job.rank:
            _follow(job, host, GroupLine(group))
        else:
            assert engine is not None
            _lead(job, host, GroupLine(group), engine)
    finally:
        mx.clear_streams()


def staged_config(config: EngineConfig) -> EngineConfig:
    """Return a config in which all is off that does not work over several stages (job.LIMITS)."""
    return replace(config, disk_folder=None, kv_bits=None, looks_ahead=False)


def layers_of_rank(layers: Sequence[int], rank: int) -> tuple[int, int]:
    """Return the first layer of a rank and the first one after it. Rank 0 has the last layers."""
    start = sum(layers[rank + 1 :])
    return start, start + layers[rank]


def load_follower(
    folder: Path,
    layers: Sequence[int],
    rank: int,
    config: EngineConfig,
    progress: Callable[[int, int], None],
) -> Follower:
    """Load the layers of a follower into this process.

    Raises:
        ModelFolderError: the folder is broken, the model cannot be divided, or weights are missing.
        RuntimeError: the weights do not fit into the memory of the device.
    """
    usable_card(folder, needs_all=False)
    require_exact(folder)
    limit_memory(config)
    start, end = layers_of_rank(layers, rank)
    try:
        own = load_own_part(folder, start, end, progress, kind=OwnLayers)
    except ModelFolderError:
        raise
    # mlx-lm trusts the files, and raises any error if they don't fit together.
    except Exception as error:
        if is_out_of_memory(error):
            raise
        cause = f"The files of {folder.name} don’t fit together."
        raise ModelFolderError(cause, details=repr(error)) from error
    if read_config(folder).sees:
        # A follower reads no picture. It gets the embeddings, or what its first layer takes.
        own.part.see(folder, own.config, PictureTokens(""), None)
    fit_to_weights(config, own.part.weight_bytes)
    memory = StageMemory(
        layout=own.layout,
        weight_bytes=own.part.weight_bytes,
        spare_bytes=spare_bytes(config, own.part.weight_bytes),
        budget_bytes=cache_budget(config, own.part.weight_bytes),
        can_merge=_can_merge_rows(own, f"rank {rank} of {list(layers)}", config),
    )
    return Follower(rank, own.part, memory, _device())


def _can_merge_rows(own: OwnPart[OwnLayers], place: str, config: EngineConfig) -> bool:
    """Return True if this stage's layers can serve several conversations in one pass.

    They are tested once, and the result is recorded (models/abilities.py).

    place: the rank and the division of the layers, for the key of the record.
    """
    records = AbilityRecords(config.abilities_folder)
    key = key_of(UntestedModel(own.part, own.config), place)
    known = records.find(key)
    ways = known and known.ways
    if ways is None:
        ways = FasterWays(can_merge=can_merge_rows(own.part))
        records.keep(key, Abilities(own.layout, ways=ways))
    return ways.can_merge


def _follow(job: StageJob, host: StageHost, line: GroupLine) -> None:
    follower = load_follower(job.folder, job.layers, job.rank, job.config, host.loading)
    host.ready(_ready(job, follower.memory))
    num_passes = 0
    is_resting = True
    while True:
        if is_resting:
            host.resting()
            if not host.await_wake():
                return
        message = line.receive(follower.expected)
        line.send(follower.handle(message))
        if message.has(Op.END):
            return
        is_resting = message.has(Op.REST)
        if message.has(Op.FEED):
            num_passes += 1
            host.passed(num_passes)


def _lead(job: StageJob, host: StageHost, line: GroupLine, engine: EngineEnds) -> None:
    relay = Relay(line, wake=host.wake_others, passed=host.passed, resting=host.resting)
    opener = LastStage(
        job.folder,
        job.layers,
        relay,
        loading=host.loading,
        ready=lambda memory: host.ready(_ready(job, memory)),
    )
    config = staged_config(job.config)
    # The streams of this thread are still needed after the engine has ended: do not call run_core.
    EngineCore(config, engine.commands, engine.emit, engine.pulse, opener).run()
    relay.end()


def _ready(job: StageJob, memory: StageMemory) -> StageReady:
    start, end = layers_of_rank(job.layers, job.rank)
    return StageReady(
        rank=job.rank,
        first_layer=start,
        last_layer=end - 1,
        weight_bytes=memory.weight_bytes,
        kv_bytes_per_token=memory.layout.kv_bytes_per_token,
        snapshot_bytes=memory.layout.snapshot_bytes,
    )


def _device() -> str:
    info: dict[str, Any] = mx.device_info() if mx.metal.is_available() else {}
    return f"{mx.default_device()} {info.get('architecture', '')} {version('mlx')}"
