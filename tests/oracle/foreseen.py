"""A check of every request that an engine starts: its plan is the one that was foreseen just before."""

from __future__ import annotations

import pytest

from engine.chat.prompt import Prompt
from engine.runner.runner import Runner
from engine.runner.sequence import Clock, Sequence
from engine.types import Request


def check_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare the plans of all requests, but for those that find stored state to be wrong."""
    restore = Runner._restore  # pyright: ignore[reportPrivateUsage]

    def checked(self: Runner, request: Request, prompt: Prompt, clock: Clock) -> Sequence:
        damaged = _num_damaged(self)
        planner = self._planner  # pyright: ignore[reportPrivateUsage]
        state = planner.restorable(request.conversation_id, prompt.token_ids)
        foreseen = planner.foresee(request, prompt, state)
        sequence = restore(self, request, prompt, clock)
        is_faulty = sequence.lease.faulted or _num_damaged(self) != damaged
        assert request.side or is_faulty or sequence.plan == foreseen
        return sequence

    monkeypatch.setattr(Runner, "_restore", checked)


def _num_damaged(runner: Runner) -> int:
    disk = runner._feeder.disk  # pyright: ignore[reportPrivateUsage]
    return 0 if disk is None else disk.statistics().damaged
