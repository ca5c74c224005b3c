"""The memory budget of the prefix cache, and MLX's own memory limits. Engine thread only.

Without a configured budget the cache may use what the GPU recommends as its working set, less the
model's weights and a head room. A `MemoryWatch` lowers this budget while other programs need
memory.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Protocol

import mlx.core as mx
import psutil

from engine.config import EngineConfig
from engine.types import CacheStatistics

log = logging.getLogger(__name__)

# The machine as sentences for the user name it.
MACHINE = "this Mac" if mx.metal.is_available() else "this computer"


def working_set_bytes() -> int:
    """Return the recommended working set of the GPU, else half the machine's memory, in bytes."""
    if mx.metal.is_available():
        return int(mx.device_info()["max_recommended_working_set_size"])
    return psutil.virtual_memory().total // 2


def spare_bytes(config: EngineConfig, weight_bytes: int) -> int:
    """Return the bytes that remain on the device when only the model's weights are in memory."""
    return max(0, (config.device_bytes or working_set_bytes()) - weight_bytes)


def cache_budget(config: EngineConfig, weight_bytes: int) -> int:
    """Return the bytes that the prefix cache may hold for a model with weight_bytes of weights.

    A configured budget is returned unchanged. Otherwise the result is the spare memory of the
    device less the head room, and at least config.least_budget_bytes.
    """
    if config.cache_budget_bytes is not None:
        return config.cache_budget_bytes
    spare = spare_bytes(config, weight_bytes) - config.head_room_bytes
    return max(config.least_budget_bytes, spare)


def limit_memory(config: EngineConfig) -> None:
    """Limit MLX's buffer cache and memory. Call before loading a model.

    Without a memory limit MLX allocates up to 1.5 times the GPU's recommended working set before it
    waits for running work to free memory.
    """
    mx.set_cache_limit(config.freed_buffers_bytes)
    if mx.metal.is_available():
        mx.set_memory_limit(working_set_bytes())


def wire_weights() -> None:
    """Let MLX wire the weights, so that macOS keeps them in memory. Call after loading a model."""
    if mx.metal.is_available():
        mx.set_wired_limit(working_set_bytes())


class _Budgeted(Protocol):
    """The part of the prefix cache's interface that MemoryWatch needs."""

    def statistics(self) -> CacheStatistics: ...

    def set_budget(self, budget_bytes: int, /) -> None: ...


class _MachineMemory(Protocol):
    """Total and available memory of the machine in bytes, a part of psutil's figures."""

    total: int
    available: int


def _machine_memory() -> _MachineMemory:
    return psutil.virtual_memory()


class MemoryWatch:
    """Periodic adjustment of the prefix cache's budget to the machine's available memory.

    The budget shrinks at once, as far as the machine needs, and grows back to its full size in
    small steps.
    """

    def __init__(
        self,
        config: EngineConfig,
        full_bytes: int,
        *,
        machine: Callable[[], _MachineMemory] = _machine_memory,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._config = config
        self._full_bytes = full_bytes  # the budget while the machine has enough memory
        self._budget_bytes = full_bytes
        self._machine = machine
        self._clock = clock
        self._next_look = clock() + config.memory_check_s  # time of the next check, by clock

    def adjust_budget(self, cache: _Budgeted) -> None:
        """Adapt the cache's budget to the machine's available memory if the next check is due."""
        now = self._clock()
        if now < self._next_look:
            return
        self._next_look = now + self._config.memory_check_s
        budget = self._fitting(self._machine(), cache)
        if budget != self._budget_bytes:
            log.info("the prefix cache's budget is %.2f GB now", budget / 1e9)
            cache.set_budget(budget)
            self._budget_bytes = budget
            # Evicted arrays stay in MLX's buffer cache. Empty it to return them to the machine.
            mx.clear_cache()

    def _fitting(self, machine: _MachineMemory, cache: _Budgeted) -> int:
        """Return the budget in bytes that fits the machine's available memory.

        While memory is scarce, the budget is the cache's size less the bytes that the machine
        lacks.
        """
        config = self._config
        missing = int(machine.total * config.scarce_memory) - machine.available
        if missing > 0:
            least = min(config.least_budget_bytes, self._full_bytes)
            held = min(self._budget_bytes, cache.statistics().total_bytes)
            return max(least, held - missing)
        if machine.available >= machine.total * config.ample_memory:
            grown = self._budget_bytes + int(self._full_bytes * config.regrowth)
            return min(self._full_bytes, grown)
        return self._budget_bytes
