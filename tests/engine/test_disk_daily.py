from __future__ import annotations

from pathlib import Path

import pytest

from engine.cache.disk.daily import DailyBytes

DAY_S = 86_400
NOON = 1_790_000_000.0


def test_bytes_of_the_day_are_kept_and_begin_again_on_the_next(tmp_path: Path) -> None:
    path, now = tmp_path / "written", [NOON]
    first = DailyBytes(path, lambda: now[0])
    first.add(16 << 20)
    assert first.is_old
    first.save(first.packed())
    assert not first.is_old
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
