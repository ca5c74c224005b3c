"""Tests of `--selftest` without a model. tests/packaging/test_twin.py has a model."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_failed_self_test_reports_the_reason_and_leaves_home_empty(tmp_path: Path) -> None:
    home, report, missing = tmp_path / "home", tmp_path / "report.json", tmp_path / "none"
    home.mkdir()
    done = subprocess.run(
        [sys.executable, "-P", "-m", "app", "--selftest-file", report, "--model", missing],
        check=False,
        timeout=100,
        env={"HOME": str(home)},
    )
    assert done.returncode == 1
    findings = json.loads(report.read_text(encoding="utf-8"))
    assert findings["window_ms"] > 0
    (problem,) = findings["problems"]
    assert f"There is no folder {missing}." in problem
    assert list(home.iterdir()) == []
