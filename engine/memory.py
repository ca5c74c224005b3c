"""The memory budget of the prefix cache, and MLX's own memory limits. Engine thread only.

served_model.py calls limit_memory before it loads a model, and fit_to_weights after the load.
cache_space.py calls cache_budget when it creates a prefix cache, and creates a `MemoryWatch`, which
lives until the next cache is created. adjust_budget is called in each step of the engine loop.
Runner calls spare_bytes to decide if a request fits into memory.

If no fixed budget is configured, the cache may use the device's memory, minus the model's weights
and some head room. The MemoryWatch lowers this budget while other programs need memory. A fixed
budget never changes, and has no MemoryWatch.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import sys
import time
from collections.abc import Callable
from typing import Protocol

import mlx.core as mx
import psutil

from engine.cache_figures import CacheStatistics
from engine.config import EngineConfig

log = logging.getLogger(__name__)

# Name of the machine in sentences that the user reads, such as errors about lack of memory.
MACHINE = "this Mac" if mx.metal.is_available() else "this computer"


def working_set_bytes() -> int:
    """Return the GPU's recommended working set in bytes. Without a GPU, return half the memory."""
    if mx.metal.is_available():
        return int(mx.device_info()["max_recommended_working_set_size"])
    return psutil.virtual_memory().total // 2


def spare_bytes(config: EngineConfig, weight_bytes: int) -> int:
    """Return the number of bytes of device memory that the model's weights leave free.

    config.device_bytes is the device's memory. If it is None, the working set is used.
    """
    return max(0, (config.device_bytes or working_set_bytes()) - weight_bytes)


def freed_bytes() -> int:
    """Return the bytes of freed buffers that MLX keeps for reuse."""
    return mx.get_cache_memory()


def process_bytes() -> int:
    """Return the resident memory of this process in bytes."""
    return psutil.Process().memory_info().rss


def release_freed() -> None:
    """Return the memory of freed arrays to the machine.

    glibc keeps freed memory too: after unloading a model of 538 MB, 580 MB stayed with the process.
    """
    mx.clear_cache()
    if sys.platform == "linux":
        # Another C library, such as musl, has no malloc_trim, and keeps less memory.
        with contextlib.suppress(AttributeError):
            ctypes.CDLL(None).malloc_trim(0)


def cache_budget(config: EngineConfig, weight_bytes: int) -> int:
    """Return the memory budget of the prefix cache in bytes.

    A configured budget is returned unchanged. Otherwise the budget is the device's memory minus
    weight_bytes (the size of the model's weights) and the head room. It is at least
    config.least_budget_bytes, and at most config.most_budget_bytes.
    """
    if config.cache_budget_bytes is not None:
        return config.cache_budget_bytes
    spare = spare_bytes(config, weight_bytes) - config.head_room_bytes
    budget = max(config.least_budget_bytes, spare)
    return budget if config.most_budget_bytes is None else min(config.most_budget_bytes, budget)


def limit_memory(config: EngineConfig) -> None:
    """Limit the memory that MLX may use. Call before loading a model.

    On every device, limit the freed buffers that MLX keeps for reuse. On Metal, also limit all
    allocations to the recommended working set of the GPU. An allocation above this limit waits
    until running work frees memory. MLX's own limit is 1.5 times as high. config.device_bytes does
    not change the limit: it only lowers our estimates.
    """
    mx.set_cache_limit(config.most_freed_bytes)
    if mx.metal.is_available():
        mx.set_memory_limit(working_set_bytes())


def fit_to_weights(config: EngineConfig, weight_bytes: int) -> None:
    """Limit the freed buffers to a share of the weights. Call after loading a model.

    On Metal, also let MLX wire the weights, so that macOS keeps them in memory.
    """
    mx.set_cache_limit(freed_limit(config, weight_bytes))
    release_freed()
    if mx.metal.is_available():
        mx.set_wired_limit(working_set_bytes())


def freed_limit(config: EngineConfig, weight_bytes: int) -> int:
    """Return the number of bytes of freed buffers that MLX may keep beside a model."""
    share = int(weight_bytes * config.freed_share)
    return min(max(share, config.least_freed_bytes), config.most_freed_bytes)


class _Budgeted(Protocol):
    """The part of the prefix cache's interface that MemoryWatch needs."""

    def statistics(self) -> CacheStatistics: ...

    def set_budget(self, budget_bytes: int, /) -> None: ...


class _MachineMemory(Protocol):
    """The machine's total and available memory in bytes, as in psutil.virtual_memory()."""

    total: int
    available: int


def _machine_memory() -> _MachineMemory:
    return psutil.virtual_memory()


class MemoryWatch:
    """Periodic adjustment of the prefix cache's budget to the machine's available memory.

    When too little memory is available, the cache shrinks at once by the number of bytes that are
    missing. Later the budget grows back to its full size in small steps.
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
        self._full_bytes = full_bytes  # Budget while the machine has enough memory.
        # The cache's present budget. Only this object changes the budget of its cache.
        self._budget_bytes = full_bytes
        self._machine = machine
        self._clock = clock
        # Time of the next check, as a value of `clock`.
        self._next_look = clock() + config.memory_check_s

    def must_look(self, cache: _Budgeted) -> bool:
        """Return whether a check can change the budget before the next request.

        A cache below the lower limit of the budget has nothing to give back.
        """
        is_reduced = self._budget_bytes < self._full_bytes
        return is_reduced or cache.statistics().total_bytes > self._config.least_budget_bytes

    def adjust_budget(
        self, cache: _Budgeted, before_change: Callable[[], object] = lambda: None
    ) -> None:
        """Adapt the cache's budget to the machine's available memory, if a check is due.

        Between two checks (config.memory_check_s), return at once. `before_change` is called only
        if the budget changes.
        """
        now = self._clock()
        if now < self._next_look:
            return
        self._next_look = now + self._config.memory_check_s
        self._change(self._fitting(self._machine(), cache), cache, before_change)

    def set_full(
        self, full_bytes: int, cache: _Budgeted, before_change: Callable[[], object]
    ) -> None:
        """Change the budget for a machine with enough memory. The cache follows at once.

        A budget that was lowered because memory is scarce grows as before.
        """
        was_full, self._full_bytes = self._budget_bytes == self._full_bytes, full_bytes
        budget = full_bytes if was_full else min(self._budget_bytes, full_bytes)
        self._change(budget, cache, before_change)

    def _change(self, budget: int, cache: _Budgeted, before_change: Callable[[], object]) -> None:
        if budget != self._budget_bytes:
            log.info("the prefix cache's budget is %.2f GB now", budget / 1e9)
            before_change()
            cache.set_budget(budget)
            self._budget_bytes = budget
            # Evicted arrays stay in MLX's buffer cache. Empty it to return them to the machine.
            release_freed()

    def _fitting(self, machine: _MachineMemory, cache: _Budgeted) -> int:
        """Return the budget in bytes that fits the machine's available memory.

        There are three cases. If the available memory is below the share `scarce_memory`, the
        result is the cache's current size minus the bytes that are missing to reach this share. If
        it is at least the share `ample_memory`, the budget grows by one step, up to its full size.
        Between these shares the budget does not change.
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
