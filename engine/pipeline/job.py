"""The seam between a stage and the process that it runs in. Frozen values and protocols, no mlx.

A stage is one process of a model that is divided by layers. Rank 0 has the last layers and the
whole engine, rank n-1 has the embedding and the first layers. mlx.distributed connects the ranks:
the process sets MLX_RANK and MLX_HOSTFILE (and, for JACCL, its variables) before it starts.

    run_stage(job, host)                              a follower: ranks 1 to n-1   (run.py)
    run_stage(job, host, engine=EngineEnds(...))      rank 0

`run_stage` returns after a Shutdown command (rank 0), or when rank 0 has ended the group (others).
It must be called on the thread that makes all mlx calls of the process. An error that leaves it
means that the process must end: a group of mlx.distributed cannot be used after its first error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Final, Protocol

from engine.config import EngineConfig
from engine.events import Command, Event
from engine.pulse import Pulse

# For the user: what this version does without if a model runs in several stages.
LIMITS: Final = (
    "A model on several Macs keeps no state on disk, stores K/V unquantised, and writes answers "
    "without drafts."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StageJob:
    """The work of one stage."""

    rank: int
    # Number of layers of each rank, rank 0 first: the result of plan.plan_stages. Rank 0 has the
    # last layers. The sum is the number of layers of the model.
    layers: tuple[int, ...]
    # The model folder on this machine. Weight files without own layers may be missing.
    folder: Path
    # Limits of memory are those of this machine. Settings that do not work over several stages
    # (LIMITS) are switched off by run_stage.
    config: EngineConfig
    # True: use an MLX backend of this name ("ring", "jaccl"). "any": MLX chooses.
    backend: str = "ring"

    @property
    def size(self) -> int:
        """Number of stages."""
        return len(self.layers)


@dataclass(frozen=True, slots=True)
class StageReady:
    """The report of a stage whose weights are in memory."""

    rank: int
    first_layer: int
    last_layer: int
    weight_bytes: int  # bytes of the stage's own weights
    kv_bytes_per_token: int
    snapshot_bytes: int


class StageHost(Protocol):
    """The process around a stage. All methods are called on the thread of run_stage.

    They must not block, except await_wake.
    """

    def loading(self, done: int, total: int) -> None:
        """Report that `done` of `total` bytes of the own weights are loaded."""
        ...

    def ready(self, report: StageReady) -> None:
        """Report that the stage is ready. Rank 0 reports it after the model has answered a test."""
        ...

    def passed(self, num_passes: int) -> None:
        """Report progress: the number of passes so far. Called after each pass."""
        ...

    def resting(self) -> None:
        """Report that the stage rests. Rank 0 calls it after all others have been told to rest."""
        ...

    def await_wake(self) -> bool:
        """Block a resting follower, without use of the processor, until rank 0 wakes it.

        A follower rests once it is ready. Each call of wake_others lets one call return, also if
        wake_others is called first.

        Returns:
            False if the follower must end instead.
        """
        ...

    def wake_others(self) -> None:
        """Rank 0 only: make await_wake of every other rank return. Called before the next pass."""
        ...


@dataclass(frozen=True, slots=True)
class EngineEnds:
    """The ends of the engine on rank 0: commands in, events out. All of them are frozen values.

    The model is loaded by a LoadModel command with the folder of the job. Another folder is refused
    with a ModelFailed event: other stages must be started for another model.
    """

    commands: SimpleQueue[Command]
    emit: Callable[[Event], None]  # called on the thread of run_stage; it must not block or raise
    pulse: Pulse = field(default_factory=Pulse)
