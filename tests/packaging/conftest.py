"""Makes appbundle importable as a top-level package, as it is for the scripts in packaging/."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "packaging"))
