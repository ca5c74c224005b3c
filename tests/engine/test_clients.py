"""Several clients of one engine."""

from __future__ import annotations

import pytest

from engine.clients import Clients
from engine.config import EngineConfig
from engine.events import (
    Event,
    LoadStage,
    ModelFailed,
    ModelLoaded,
    ModelLoading,
    ModelUnloaded,
)
from engine.problem import Problem
from tests.fakes.fake_engine import FACTS, FakeEngine

LOADED = ModelLoaded(FACTS)
FAILED = ModelFailed("model", Problem(title="No.", cause="", advice=""))
LOADING = ModelLoading("", LoadStage.IMPORTING, 0.0, 0, 0)


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([], []),
        ([LOADING], []),
        ([LOADED], [LOADED]),
        # The next request loads the model again.
        ([LOADED, ModelUnloaded(loads_again=True)], [LOADED]),
        ([LOADED, ModelUnloaded(loads_again=True), LOADING], [LOADED]),
        ([LOADED, ModelUnloaded()], [ModelUnloaded()]),
        ([LOADED, FAILED], [FAILED]),
    ],
)
def test_client_that_joins_late_learns_which_model_answers(
    events: list[Event], expected: list[Event]
) -> None:
    clients = Clients(lambda _event: None)
    for event in events:
        clients.emit(event)
    got: list[Event] = []
    clients.join(FakeEngine(EngineConfig(), clients.emit), got.append)

    assert got == expected
