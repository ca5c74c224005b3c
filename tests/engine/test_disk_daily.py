"""The count of bytes of cached state that were written today."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest

from engine.cache.disk.daily import DailyBytes

DAY_S = 86_400
NOON = 1_790_000_000.0


def test_bytes_of_the_day_are_kept_and_begin_again_on_the_next(tmp_path: Path) -> None:
    path, now = tmp_path / "written", [NOON]
    first = DailyBytes(path, lambda: now[0])
    first.add(16 << 20)
    assert path.stat().st_mode & 0o077 == 0

    second = DailyBytes(path, lambda: now[0])
    second.add(1)
    assert second.nbytes == (16 << 20) + 1
    now[0] += DAY_S
    assert second.nbytes == 0
    assert DailyBytes(path, lambda: now[0]).nbytes == 0


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{", '{"day": 1, "bytes": 2}', '{"day": "x", "bytes": -5}', "[" * 900, "9" * 9999],
)
def test_file_that_is_no_count_of_today_counts_as_none(tmp_path: Path, content: str) -> None:
    path = tmp_path / "written"
    path.write_text(content)
    assert DailyBytes(path, lambda: NOON).nbytes == 0


@pytest.mark.parametrize(
    "nbytes", [-1, 10**900, 1.5, None], ids=["negative", "huge", "fraction", "none"]
)
def test_count_of_today_that_is_impossible_counts_as_none(tmp_path: Path, nbytes: object) -> None:
    path = tmp_path / "written"
    today = date.fromtimestamp(NOON).toordinal()  # noqa: DTZ012 (the local calendar)
    path.write_text(json.dumps({"day": today, "bytes": nbytes}))
    assert DailyBytes(path, lambda: NOON).nbytes == 0
