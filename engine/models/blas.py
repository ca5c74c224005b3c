"""Load a fast BLAS library for MLX's CPU backend on Linux, before mlx is imported.

The Linux wheels of MLX link a reference BLAS that is about 15 times slower than OpenBLAS. If
OpenBLAS is loaded globally before mlx, MLX calls the functions of OpenBLAS instead.

OpenBLAS has a drawback: its rounding depends on how a prompt is divided into passes. The rounding
of the reference BLAS does not depend on the division.
"""

from __future__ import annotations

import ctypes
import logging
import sys

log = logging.getLogger(__name__)

_LIBRARY = "libopenblas.so.0"


def load_openblas() -> bool:
    """Load the system's OpenBLAS on Linux, and return True if it was loaded.

    Call before importing mlx.
    """
    if not sys.platform.startswith("linux"):
        return False
    if "mlx.core" in sys.modules:
        log.info("OpenBLAS is not loaded, because mlx was imported before")
        return False
    try:
        ctypes.CDLL(_LIBRARY, mode=ctypes.RTLD_GLOBAL)
    except OSError:
        log.info("%s is missing: MLX will be slow (install libopenblas0-pthread)", _LIBRARY)
        return False
    return True
