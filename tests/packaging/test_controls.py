"""Test that the verifier finds every damage that tests.packaging.controls makes to a bundle.

test_verifier.py tries all damages in this process.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from appbundle.verifier import CHECKS
from tests.fakes.tables import rest_in_soak
from tests.packaging.crafted import make_bundle
from tests.packaging.damages import DAMAGES
from tests.packaging.tree import contents

ROOT = Path(__file__).parents[2]
ALL = frozenset(CHECKS)
FEW = frozenset({"icon", "seal"})


@pytest.mark.slow
@pytest.mark.parametrize("checks", rest_in_soak((ALL, FEW), FEW), ids=len)
def test_controls_catch_all_damages_and_leave_the_bundle_unchanged(
    tmp_path: Path, checks: frozenset[str]
) -> None:
    app = make_bundle(tmp_path).layout.app
    before = contents(app)

    ran = subprocess.run(
        [sys.executable, "-P", "-m", "tests.packaging.controls", str(app), "--checks", *checks],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (ran.returncode, ran.stderr) == (0, "")
    *lines, last = ran.stdout.splitlines()
    assert len(lines) == sum(damage.check in checks for damage in DAMAGES)
    assert "0 missed" in last
    assert contents(app) == before
    assert list(tmp_path.glob(".damaged-*")) == []
