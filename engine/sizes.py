"""Numbers of bytes in the engine's sentences."""

from __future__ import annotations


def size_of(num_bytes: int) -> str:
    """Return a size with its unit, such as 5.2 GB, 16 GB or 207 bytes."""
    for unit, power in (("GB", 9), ("MB", 6), ("KB", 3)):
        if num_bytes >= 10**power:
            return f"{num_bytes / 10**power:.1f}".removesuffix(".0") + f" {unit}"
    return f"{num_bytes} bytes"
