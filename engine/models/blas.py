"""A fast BLAS for MLX's CPU backend on Linux, loaded before mlx is first imported.

MLX's Linux wheels link a reference BLAS, whose sums do not depend on how a prompt is cut but which
is about 15 times slower. Symbols of a library loaded globally take precedence over it.
"""

from __future__ import annotations

import ctypes
import logging
import sys

log = logging.getLogger(__name__)

_LIBRARY = "libopenblas.so.0"


def load_openblas() -> bool:
    """Load the system's OpenBLAS if this is Linux and there is one. Call before importing mlx."""
    if not sys.platform.startswith("linux"):
        return False
    if "mlx.core" in sys.modules:
        log.info("mlx is loaded already: OpenBLAS is left out")
        return False
    try:
        ctypes.CDLL(_LIBRARY, mode=ctypes.RTLD_GLOBAL)
    except OSError:
        log.info("no %s: the CPU backend will be slow (install libopenblas0-pthread)", _LIBRARY)
        return False
    return True
