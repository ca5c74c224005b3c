"""Days as words, such as "3 weeks ago". No Qt."""

from __future__ import annotations

from datetime import date

from app.words import days as words

_LAST_DAY = 13  # days; older dates are in weeks
_LAST_WEEK = 59  # days; older dates are in months
_LAST_MONTH = 729  # days; older dates are in years


def days_ago(day: date, today: date) -> str:
    """Return how long ago a day is. A day in the future counts as today."""
    days = max(0, (today - day).days)
    if days < 2:
        return words.YESTERDAY if days else words.TODAY
    if days <= _LAST_DAY:
        return words.days_ago(days)
    if days <= _LAST_WEEK:
        return words.weeks_ago(days // 7)
    if days <= _LAST_MONTH:
        return words.months_ago(days * 12 // 365)
    return words.years_ago(days // 365)
