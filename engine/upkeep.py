"""Idle work that no conversation waits for: tests of faster ways, timed passes, and audits.

Engine thread only, without mlx. The faster ways of a model are tested and its passes are timed once
after a load. An audit recomputes the state at a resume point and compares it with the stored state.
idle.py calls these methods when no task is left.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from engine.idle_job import IdleJob, IdleWorker
from engine.running_job import attempt_idle

# Seconds after a load in which nothing is tested or timed: a message that waited for the model
# comes.
_SETTLE_S = 1.0


class Upkeep:
    """The tests, timings and audits of the loaded model that are still to be done."""

    def __init__(
        self,
        is_awaited: Callable[[], bool],
        may_work: Callable[[], bool],
        audit_every_s: float,
        clock: Callable[[], float],
    ) -> None:
        """Create an instance without a model.

        Args:
            is_awaited: returns True if the caller waits for the end of all idle work.
            may_work: returns True if idle work is on and the machine is plugged in.
            audit_every_s: lowest number of seconds between two audits.
            clock: returns the current time in seconds.
        """
        self._is_awaited = is_awaited
        self._may_work = may_work
        self._audit_every_s = audit_every_s
        self._clock = clock
        self._worker: IdleWorker | None = None
        self._settled_at = 0.0  # time from which the faster ways are tested and passes timed
        self._is_measured = False  # True if the passes of the loaded model are timed
        self._audited_at = clock()  # time of the last audit, initially the time of creation
        self._has_worked = False  # True if the engine did other work after the last audit

    @property
    def worker(self) -> IdleWorker | None:
        """The functions for the loaded model, None while no model is loaded."""
        return self._worker

    @worker.setter
    def worker(self, worker: IdleWorker | None) -> None:
        self._worker = worker
        self._is_measured = False
        self._settled_at = self._clock() + _SETTLE_S

    @property
    def has_work(self) -> bool:
        """True if `step` would do work, or `start_audit` return a job."""
        return self._has_ways_to_test() or self._has_passes_to_time() or self.is_audit_due

    @property
    def settles_in_s(self) -> float | None:
        """Seconds until something may be tested or timed. None if nothing is left."""
        if self._has_ways_left() or self._has_passes_left():
            return max(0.0, self._settled_at - self._clock())
        return None

    @property
    def audit_in_s(self) -> float:
        """Seconds until an audit may be due; infinite if the engine must do other work first."""
        if not self._has_worked:
            return math.inf
        return max(0.0, self._audited_at + self._audit_every_s - self._clock())

    @property
    def is_audit_due(self) -> bool:
        """True if the audit interval is over and the engine did other work after the last audit."""
        return self._worker is not None and self.audit_in_s == 0 and self._may_work()

    def note_work(self) -> None:
        """Record that the engine did work that an audit may check."""
        self._has_worked = True

    def step(self) -> bool:
        """Test a step of the faster ways, or time passes. Return False if nothing is left."""
        return self._test_ways() or self._time_passes()

    def start_audit(self) -> IdleJob | None:
        """Return the job of an audit that is due. None if no state can be audited."""
        assert self._worker is not None
        self._audited_at = self._clock()
        self._has_worked = False
        return attempt_idle(self._worker.audit)

    def _is_settled(self) -> bool:
        return self._is_awaited() or self._clock() >= self._settled_at

    def _has_ways_left(self) -> bool:
        return self._worker is not None and self._worker.test_ways is not None

    def _has_ways_to_test(self) -> bool:
        return self._has_ways_left() and self._is_settled()

    def _test_ways(self) -> bool:
        if not self._has_ways_to_test():
            return False
        assert self._worker is not None
        assert self._worker.test_ways is not None
        if attempt_idle(self._worker.test_ways) is None:
            # The test failed, for example because memory is short. The next load tests again.
            self.worker = replace(self._worker, test_ways=None)
        return True

    def _has_passes_left(self) -> bool:
        if self._worker is None or self._worker.measure_passes is None or self._is_measured:
            return False
        return self._may_work()

    def _has_passes_to_time(self) -> bool:
        return self._has_passes_left() and self._is_settled()

    def _time_passes(self) -> bool:
        if not self._has_passes_to_time():
            return False
        assert self._worker is not None
        assert self._worker.measure_passes is not None
        if not attempt_idle(self._worker.measure_passes):
            self._is_measured = True
        return True
