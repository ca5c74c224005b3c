"""Numbers with their units. app.viewmodels.figures rounds them and passes decimals as text."""

from __future__ import annotations

from typing import Final


def tokens(count: int) -> str:
    return "1 token" if count == 1 else f"{count:,} tokens"


NO_RATE: Final = "…"  # in place of a rate that is not known yet


def tokens_per_second(rate: str) -> str:
    return f"{rate} tok/s"


def milliseconds(number: int) -> str:
    return f"{number} ms"


def seconds(number: int | str) -> str:
    return f"{number} s"


def minutes(number: int) -> str:
    return f"{number} min"


def kilobytes(number: int) -> str:
    return f"{number} KB"


def megabytes(number: int | str) -> str:
    return f"{number} MB"


def gigabytes(number: str) -> str:
    return f"{number} GB"


def share(*, done: str, total: str) -> str:
    """Return a part of a total, whose text names the unit: 12 of 431 tokens."""
    return f"{done} of {total}"
