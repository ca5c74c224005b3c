"""Signs a bundle ad hoc and seals it, with rcodesign as a Python package. Works on any system."""

from __future__ import annotations

import subprocess
from pathlib import Path

_CODE = "import sys, apple_platform; apple_platform.sign(sys.argv[1])"


def sign_adhoc(app: Path, tools_python: Path) -> None:
    """Sign the bundle. The interpreter `tools_python` must have the package apple-platform-py."""
    subprocess.run(
        [str(tools_python), "-EP", "-c", _CODE, str(app)], check=True, capture_output=True
    )
