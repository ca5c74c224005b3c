"""Memory of the device and the machine, and MLX's limits on it. Engine thread only."""

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

MACHINE = "this Mac" if mx.metal.is_available() else "this computer"


def working_set_bytes() -> int:
    """Return the bytes that the GPU should use at most; half the memory where there is no GPU."""
    if mx.metal.is_available():
        return int(mx.device_info()["max_recommended_working_set_size"])
    return psutil.virtual_memory().total // 2


def spare_bytes(config: EngineConfig, weight_bytes: int) -> int:
    """Return the bytes that the device has beside the weights, with nothing else held."""
    return max(0, (config.device_bytes or working_set_bytes()) - weight_bytes)


def cache_budget(config: EngineConfig, weight_bytes: int) -> int:
    """Return the bytes for cached conversations: the configured ones, else what the device can spare."""
    if config.cache_budget_bytes is not None:
        return config.cache_budget_bytes
    spare = spare_bytes(config, weight_bytes) - config.head_room_bytes
    return max(config.least_budget_bytes, spare)


def limit_memory(config: EngineConfig) -> None:
    """Limit MLX's buffer cache and memory. Call before loading a model.

    Without a memory limit MLX allocates 1.5 times what the GPU recommends before it waits.
    """
    mx.set_cache_limit(config.freed_buffers_bytes)
    if mx.metal.is_available():
        mx.set_memory_limit(working_set_bytes())


def wire_weights() -> None:
    """Keep the weights resident. Call after loading a model."""
    if mx.metal.is_available():
        mx.set_wired_limit(working_set_bytes())


class _Budgeted(Protocol):
    """The part of the prefix cache that a watch needs."""

    def statistics(self) -> CacheStatistics: ...

    def set_budget(self, budget_bytes: int, /) -> None: ...


class _MachineMemory(Protocol):
    """The part of psutil's figures that is used, in bytes."""

    total: int
    available: int


def _machine_memory() -> _MachineMemory:
    return psutil.virtual_memory()


class MemoryWatch:
    """Adjusts the cache's budget to what the machine has available.

    It shrinks at once by what the machine lacks, and grows back in small steps.
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
        self._full_bytes = full_bytes
        self._budget_bytes = full_bytes
        self._machine = machine
        self._clock = clock
        self._next_look = clock() + config.memory_check_s

    def adjust_budget(self, cache: _Budgeted) -> None:
        """Change the budget of the cache, if it is time to check and it differs."""
        now = self._clock()
        if now < self._next_look:
            return
        self._next_look = now + self._config.memory_check_s
        budget = self._fitting(self._machine(), cache)
        if budget != self._budget_bytes:
            log.info("the cache may hold %.2f GB", budget / 1e9)
            cache.set_budget(budget)
            self._budget_bytes = budget
            # Return the evicted bytes to the machine instead of MLX's buffer cache.
            mx.clear_cache()

    def _fitting(self, machine: _MachineMemory, cache: _Budgeted) -> int:
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
