"""The name of the user's computer in sentences and headings."""

from __future__ import annotations

import sys
from typing import Final

IS_MAC: Final = sys.platform == "darwin"
THIS_COMPUTER: Final = "this Mac" if IS_MAC else "this computer"
IN_TITLES: Final = "This Mac" if IS_MAC else "This Computer"
