"""Lazy arrays computed a few at a time, so that others get their turn in between. Engine thread only."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterable

import mlx.core as mx

from engine.cache.trees import evaluate


class Computation:
    """Parts in the order in which they depend on each other: the layers of a pass, or parts of them.

    How a pass is divided in time changes no bit of it: it is one graph, whoever asks for what first.
    """

    def __init__(self, parts: Iterable[list[mx.array]]) -> None:
        self._parts = deque(parts)
        self._recent = deque[float](maxlen=4)  # seconds that the newest parts took

    def compute_parts(self, seconds: float = math.inf) -> bool:
        """Compute one part, and more if they will take no longer than that. Whether all is done."""
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
