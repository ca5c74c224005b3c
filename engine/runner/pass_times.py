"""Durations of passes of several tokens, measured once per model in idle time. Engine thread only.

The engine calls `PassTimes.measure` while nothing else is to do after a model is loaded. So the first
reply knows already how many drafts are worth a pass on this machine.
"""

from __future__ import annotations

from time import perf_counter

import mlx.core as mx

from engine.cache.layout import Leaves
from engine.cache.trees import evaluate
from engine.cleanup import undo_on_error
from engine.models.adapter import ModelAdapter
from engine.speculation.pace import MAX_PASS_LEN

# Number of tokens in the caches before the first pass.
_CONTEXT = 64
_REPEATS = 3


class PassTimes:
    """The shortest measured duration of a pass, by its number of tokens."""

    def __init__(self, adapter: ModelAdapter) -> None:
        self._adapter = adapter
        self._caches: list[object] = []  # empty before the first pass and after the last one
        self._left = list(range(MAX_PASS_LEN, 0, -1))  # lengths to measure, in reverse order
        self.seconds: dict[int, float] = {}

    def measure(self) -> bool:
        """Run the passes of one length. Return False once all lengths are measured."""
        if not self._left:
            self._caches.clear()
            return False
        with undo_on_error(self._caches.clear):
            if not self._caches:
                self._caches += self._adapter.new_caches()
                self._run(_CONTEXT)
            pass_len = self._left.pop()
            self._run(pass_len)  # compiles GPU kernels
            self.seconds[pass_len] = min(self._run(pass_len) for _ in range(_REPEATS))
        return True

    def _run(self, pass_len: int) -> float:
        """Run a pass and return its duration in seconds."""
        start = perf_counter()
        input_ids = mx.array([[i % 8 for i in range(pass_len)]], mx.int32)
        logits = self._adapter.run(input_ids, self._caches)
        leaves = Leaves.of(self._caches)
        evaluate(logits, leaves.buffers, leaves.states)
        return perf_counter() - start
