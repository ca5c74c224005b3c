"""Limits, namespace and figures of the cached state on disk."""

from __future__ import annotations

import hashlib
import platform
from dataclasses import replace
from importlib.metadata import version

import mlx.core as mx

from engine.cache.disk.folder import Folder
from engine.cache.disk.tier import DiskLimits, DiskTier
from engine.config import EngineConfig
from engine.types import CacheStatistics

# Default size of the folder: this many bytes, or this share of the space that is free without it.
_BUDGET_BYTES = 20 * 10**9
_BUDGET_SHARE = 0.1


def disk_namespace(model: str, config: EngineConfig) -> str:
    """Return a hash of all that decides the bits of cached state.

    model: the result of models.loader.namespace_of: weights, quantisation, K/V bits and device.
    """
    parts = [
        model,
        *(f"{name} {version(name)}" for name in ("mlx", "mlx-lm")),
        str(mx.device_info().get("device_name", "")),
        platform.machine(),
        f"OpenBLAS: {config.use_openblas}",
    ]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


def disk_limits(config: EngineConfig, folder: Folder) -> DiskLimits:
    """Return how much the tier may keep and write.

    Raises:
        OSError: the free space of the disk is unknown.
    """
    budget = config.disk_budget_bytes
    if budget is None:
        ours = folder.index.nbytes + folder.other_bytes()
        budget = min(_BUDGET_BYTES, int((folder.free_bytes() + ours) * _BUDGET_SHARE))
    return DiskLimits(budget_bytes=budget, daily_bytes=config.disk_daily_bytes)


def with_disk(statistics: CacheStatistics, disk: DiskTier | None) -> CacheStatistics:
    """Return the statistics of a cache with the figures of its part on disk."""
    if disk is None:
        return statistics
    found = disk.statistics()
    return replace(
        statistics,
        disk_bytes=found.nbytes,
        disk_records=found.num_records,
        disk_written_bytes=found.written_bytes,
        disk_written_today_bytes=found.written_today_bytes,
        disk_damaged=found.damaged,
        disk_problem=found.problem,
    )
