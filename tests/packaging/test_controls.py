"""Test that the verifier finds every damage that tests.packaging.controls makes to a bundle."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packaging.crafted import make_bundle
from tests.packaging.damages import DAMAGES
from tests.packaging.tree import contents

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_controls_catch_all_damages_and_leave_the_bundle_unchanged(tmp_path: Path) -> None:
    app = make_bundle(tmp_path).layout.app
    before = contents(app)

    ran = subprocess.run(
        [sys.executable, "-P", "-m", "tests.packaging.controls", str(app)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (ran.returncode, ran.stderr) == (0, "")
    *lines, last = ran.stdout.splitlines()
    assert len(lines) == len(DAMAGES)
    assert "0 missed" in last
    assert contents(app) == before
    assert list(tmp_path.glob(".damaged-*")) == []
