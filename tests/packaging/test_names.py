"""The folder packaging/ has the name of a library that transformers needs, and must not hide it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_installed_library_wins_over_the_folder() -> None:
    program = "import packaging.version; print(packaging.version.__file__)"
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert "site-packages" in ran.stdout
    assert not Path(ran.stdout.strip()).is_relative_to(ROOT / "packaging")
