"""The progress of loading a divided model, from the states of its stages."""

from __future__ import annotations

import pytest

from engine.events import LoadStage, ModelLoading, StagePhase, StageState
from engine.hosts.staged_engine import loading_of


def stage(phase: StagePhase, loaded: int = 0, total: int = 0) -> StageState:
    return StageState(name="mac", phase=phase, loaded_bytes=loaded, total_bytes=total)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (stage(StagePhase.STARTING), stage(StagePhase.HERE), (LoadStage.CONNECTING, 0.0, 0, 0)),
        (
            stage(StagePhase.LOADING, 0, 30),
            stage(StagePhase.LOADING, 0, 10),
            (LoadStage.CONNECTING, 0.0, 0, 40),
        ),
        (
            stage(StagePhase.LOADING, 5, 30),
            stage(StagePhase.READY, 10, 10),
            (LoadStage.LOADING, 0.375, 15, 40),
        ),
        (
            stage(StagePhase.LOADING, 30, 30),
            stage(StagePhase.READY, 10, 10),
            (LoadStage.CHECKING, 1.0, 40, 40),
        ),
    ],
)
def test_stage_of_loading_follows_from_the_bytes_of_all_stages(
    first: StageState, second: StageState, expected: tuple[LoadStage, float, int, int]
) -> None:
    assert loading_of("/m", (first, second)) == ModelLoading("/m", *expected)
