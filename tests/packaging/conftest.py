"""The programs of packaging/ import from beside themselves; their tests find the same modules."""

from __future__ import annotations

import sys
from pathlib import Path

# At the end: nothing there hides an installed package.
sys.path.append(str(Path(__file__).parents[2] / "packaging"))
