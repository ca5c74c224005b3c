from __future__ import annotations

from datetime import date, timedelta

import pytest

from app.viewmodels.days import days_ago

TODAY = date(2026, 11, 26)


@pytest.mark.parametrize(
    ("days", "text"),
    [
        (-3, "today"),
        (0, "today"),
        (1, "yesterday"),
        (13, "13 days ago"),
        (14, "2 weeks ago"),
        (59, "8 weeks ago"),
        (60, "1 month ago"),
        (180, "5 months ago"),
        (729, "23 months ago"),
        (730, "2 years ago"),
    ],
)
def test_day_in_the_past_is_told_in_words(days: int, text: str) -> None:
    assert days_ago(TODAY - timedelta(days=days), TODAY) == text
