"""Evaluation of a forward pass in parts, so that other requests decode between two parts.

Engine thread only.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterable

import mlx.core as mx

from engine.cache.trees import evaluate


class Computation:
    """A lazy forward pass, divided into parts that can be evaluated at different times.

    A part is, for example, the arrays of one layer's cache, or a block of attention outputs. Each
    part depends only on earlier parts. All parts belong to one graph, so the result is the same to
    the last bit, no matter when each part is evaluated.
    """

    def __init__(self, parts: Iterable[list[mx.array]]) -> None:
        self._parts = deque(parts)
        # Seconds that each of the last four parts took. The largest value is the estimate for the
        # next part.
        self._recent = deque[float](maxlen=4)

    def compute_parts(self, seconds: float = math.inf) -> bool:
        """Evaluate one part, then more parts while they are expected to fit into `seconds`.

        Returns:
            True once all parts are evaluated.
        """
        if seconds == math.inf:
            evaluate(list(self._parts))
            self._parts.clear()
        start = time.perf_counter()
        while self._parts:
            before = time.perf_counter()
            evaluate(self._parts.popleft())
            now = time.perf_counter()
            self._recent.append(now - before)
            if now - start + max(self._recent) > seconds:
                break
        return not self._parts
