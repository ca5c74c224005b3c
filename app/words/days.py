"""Texts of days that lie in the past."""

from __future__ import annotations

from typing import Final

TODAY: Final = "today"
YESTERDAY: Final = "yesterday"


def days_ago(number: int) -> str:
    return f"{number} days ago"


def weeks_ago(number: int) -> str:
    return f"{number} weeks ago"


def months_ago(number: int) -> str:
    return f"{number} months ago" if number > 1 else "1 month ago"


def years_ago(number: int) -> str:
    return f"{number} years ago" if number > 1 else "1 year ago"
