"""Numbers with their units.

app.viewmodels.figures rounds all other numbers, and passes numbers with decimals as strings.
"""

from __future__ import annotations

from typing import Final


def tokens(count: int) -> str:
    return "1 token" if count == 1 else f"{count:,} tokens"


RATE: Final = "tok/s"


def tokens_per_second(rate: str) -> str:
    return f"{rate} {RATE}"


def milliseconds(number: int | str) -> str:
    return f"{number} ms"


def seconds(number: int | str) -> str:
    return f"{number} s"


def minutes(number: int) -> str:
    return f"{number} min"


def minutes_seconds(number: int, rest: int) -> str:
    return f"{number} min {rest} s"


def hours(number: str) -> str:
    return f"{number} h"


def hours_minutes(number: int, rest: int) -> str:
    return f"{number} h {rest} min" if rest else f"{number} h"


def between(least: str, most: str) -> str:
    return f"{least} to {most}"


def or_more(amount: str) -> str:
    return f"{amount} or more"


def kilobytes(number: int) -> str:
    return f"{number} KB"


def megabytes(number: int | str) -> str:
    return f"{number} MB"


def in_gigabytes(num_bytes: int) -> str:
    """Return gigabytes without the unit: one decimal below 100 GB, no decimal that is 0."""
    number = num_bytes / 1e9
    return f"{number:.1f}".removesuffix(".0") if number < 99.95 else f"{number:.0f}"


def gigabytes(num_bytes: int) -> str:
    """Return gigabytes with their unit, such as 5.2 GB, 16 GB or 128 GB."""
    return f"{in_gigabytes(num_bytes)} GB"


def share(*, done: str, total: str) -> str:
    """Return a text such as "12 of 431 tokens". `total` includes the unit."""
    return f"{done} of {total}"


def default(value: str) -> str:
    """Return the hint in an empty field: the value that holds then."""
    return f"Default: {value}"
