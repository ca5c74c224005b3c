"""The scripts below packaging/ import appbundle as a top-level package, so its tests do too."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "packaging"))
