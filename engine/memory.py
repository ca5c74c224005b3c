"""How much memory the device gives, and MLX's own limits. Engine thread only."""

from __future__ import annotations

import mlx.core as mx
import psutil

from engine.config import EngineConfig

# Left to macOS, the other apps and the working set of a forward pass.
_HEAD_ROOM = 2 << 30
# A small machine still keeps a few conversations.
_LEAST_BUDGET = 256 << 20
# Freed buffers that MLX may keep for itself.
_MLX_CACHE = 1 << 30


def cache_budget(config: EngineConfig, weight_bytes: int) -> int:
    """Bytes for cached conversations: the configured ones, else what the device has to spare."""
    if config.cache_budget_bytes is not None:
        return config.cache_budget_bytes
    return max(_LEAST_BUDGET, working_set_bytes() - weight_bytes - _HEAD_ROOM)


def working_set_bytes() -> int:
    """Bytes that the GPU should use at most; half the memory where there is no GPU."""
    if mx.metal.is_available():
        return int(mx.device_info()["max_recommended_working_set_size"])
    return psutil.virtual_memory().total // 2


def limit_freed_buffers() -> None:
    """Before loading: what MLX frees is given back beyond this much."""
    mx.set_cache_limit(_MLX_CACHE)


def wire_weights() -> None:
    """After loading: the weights stay resident."""
    if mx.metal.is_available():
        mx.set_wired_limit(working_set_bytes())
