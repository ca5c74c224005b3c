"""Test that the folder packaging/ does not hide the installed library `packaging`.

The library transformers imports `packaging`.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_import_of_packaging_finds_the_installed_library() -> None:
    program = "import packaging.version; print(packaging.version.__file__)"
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert "site-packages" in ran.stdout
    assert not Path(ran.stdout.strip()).is_relative_to(ROOT / "packaging")
