"""Formatting of counts, durations and sizes for display. No Qt, no I/O."""

from __future__ import annotations

from app.words import units as words


def count(number: int) -> str:
    """Format an integer with thousands separators: 12431 -> 12,431."""
    return f"{number:,}"


def about(number: int) -> int:
    """Round an estimate to two significant digits: 12601 -> 13000."""
    return round(number, 2 - len(str(number)))


def milliseconds(value_ms: float) -> str:
    """Format a duration: 6 ms below 1 s, 1.2 s below 10 s, 12 s below 90 s, else 2 min 5 s."""
    if value_ms < 999.5:
        return words.milliseconds(max(1, round(value_ms)))
    if value_ms < 9_950:
        return words.seconds(f"{value_ms / 1000:.1f}")
    whole = round(value_ms / 1000)
    return words.seconds(whole) if whole < 90 else words.minutes_seconds(*divmod(whole, 60))


def seconds(value_s: float) -> str:
    """Format an estimated duration: whole seconds (9 s) below 90 s, else minutes (3 min)."""
    whole = max(1, round(value_s))
    return words.seconds(whole) if whole < 90 else words.minutes(round(value_s / 60))


def long_time(value_s: float) -> str:
    """Format a sum of durations: as seconds() below 90 min, then 1 h 40 min, from 10 h on 12 h."""
    minutes = round(value_s / 60)
    if minutes < 90:
        return seconds(value_s)
    hours, rest = divmod(minutes, 60)
    return (
        words.hours_minutes(hours, rest) if hours < 10 else words.hours(count(round(minutes / 60)))
    )


def seconds_between(least_s: float, most_s: float) -> str:
    """Format a range of durations with one unit if possible: 20 to 50 s, 40 s to 3 min."""
    least, most = seconds(least_s), seconds(most_s)
    if least == most:
        return least
    number, _, unit = least.partition(" ")
    return words.between(number if most.endswith(f" {unit}") else least, most)


def file_size(num_bytes: int) -> str:
    """Format a file size in decimal units, as Finder and `hf` do: 98 MB, 5.2 GB, 16 GB."""
    if num_bytes < 1_000_000:
        return words.kilobytes(max(1, round(num_bytes / 1_000)))
    if num_bytes < 999_500_000:
        return words.megabytes(round(num_bytes / 1_000_000))
    return words.gigabytes(num_bytes)


def share(done_bytes: int, total_bytes: int) -> str:
    """Format progress in bytes, with one unit for both numbers: 3.1 of 5.2 GB."""
    if total_bytes >= 999_500_000:
        done, total = words.in_gigabytes(done_bytes), words.gigabytes(total_bytes)
        return words.share(done=done, total=total)
    total = words.megabytes(f"{total_bytes / 1e6:.0f}")
    return words.share(done=f"{done_bytes / 1e6:.0f}", total=total)


def parameters(number: int) -> str:
    """Format a number of model parameters: 290K, 135M, 1.7B, 9B."""
    if number < 999_500:
        return f"{round(number / 1_000)}K"
    if number < 999_500_000:
        return f"{round(number / 1_000_000)}M"
    billions = number / 1_000_000_000
    return f"{billions:.1f}B".replace(".0B", "B") if billions < 9.95 else f"{round(billions)}B"


def percent(fraction: float) -> str:
    """Format a fraction as a percentage. Round down, so that 100% means complete."""
    return f"{int(fraction * 100)}%"
