"""Durations of passes of several tokens, measured once per model in idle time. Engine thread only.

The engine calls `PassTimes.measure` while nothing else is to do after a model is loaded. So the
first reply knows already how many drafts are worth a pass on this machine.
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
        self._durations: list[float] = []  # of the length that is measured now
        self.seconds: dict[int, float] = {}

    def measure(self) -> bool:
        """Run one pass. Return False once all lengths are measured.

        A request or the end of the app waits for one pass only: on a busy CPU it takes a second.
        """
        if not self._left:
            self._caches.clear()
            return False
        with undo_on_error(self._caches.clear):
            if not self._caches:
                self._caches += self._adapter.new_caches()
                self._run(_CONTEXT)
                return True
            self._durations.append(self._run(self._left[-1]))
        if len(self._durations) > _REPEATS:
            # The first pass compiles GPU kernels.
            self.seconds[self._left.pop()] = min(self._durations[1:])
            self._durations.clear()
        return True

    def _run(self, pass_len: int) -> float:
        """Run a pass and return its duration in seconds."""
        start = perf_counter()
        input_ids = mx.array([[i % 8 for i in range(pass_len)]], mx.int32)
        logits = self._adapter.run(input_ids, self._caches)
        leaves = Leaves.of(self._caches)
        evaluate(logits, leaves.buffers, leaves.states)
        return perf_counter() - start
