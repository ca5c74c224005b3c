"""Numbers as people read them. Pure."""

from __future__ import annotations


def count(number: int) -> str:
    """12431 -> 12,431."""
    return f"{number:,}"


def tokens(number: int) -> str:
    return "1 token" if number == 1 else f"{number:,} tokens"


def milliseconds(value_ms: float) -> str:
    """6 ms below a second, 1.2 s below ten, 12 s above."""
    if value_ms < 999.5:
        return f"{max(1, round(value_ms))} ms"
    return f"{value_ms / 1000:.1f} s" if value_ms < 9_950 else seconds(value_ms / 1000)


def seconds(value_s: float) -> str:
    """9 s below a minute and a half, 3 min above."""
    whole = max(1, round(value_s))
    return f"{whole} s" if whole < 90 else f"{round(value_s / 60)} min"


def file_size(num_bytes: int) -> str:
    """98 MB, 5.2 GB: decimal units, as Finder and `hf` count."""
    if num_bytes < 1_000_000:
        return f"{max(1, round(num_bytes / 1_000))} KB"
    if num_bytes < 999_500_000:
        return f"{round(num_bytes / 1_000_000)} MB"
    return f"{num_bytes / 1_000_000_000:.1f} GB"


def share(done_bytes: int, total_bytes: int) -> str:
    """3.1 of 5.2 GB: the unit of the whole for both."""
    unit, divisor = ("GB", 1e9) if total_bytes >= 999_500_000 else ("MB", 1e6)
    digits = 1 if unit == "GB" else 0
    return f"{done_bytes / divisor:.{digits}f} of {total_bytes / divisor:.{digits}f} {unit}"


def parameters(number: int) -> str:
    """135M, 1.7B, 9B."""
    if number < 999_500_000:
        return f"{round(number / 1_000_000)}M"
    billions = number / 1_000_000_000
    return f"{billions:.1f}B".replace(".0B", "B") if billions < 9.95 else f"{round(billions)}B"


def percent(fraction: float) -> str:
    """Rounded down: 100% means done."""
    return f"{int(fraction * 100)}%"
