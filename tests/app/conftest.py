"""Fixtures for tests of the app: main windows on a fake engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication

from app.settings import Settings
from tests.fakes.rig import FakeCatalog
from tests.fakes.stage import Stage

MakeStage = Callable[..., Stage]


@pytest.fixture
def make_stage(tmp_path: Path, qapp: QApplication) -> Iterator[MakeStage]:
    """Return a function that opens a window on the data folder of the test."""
    stages: list[Stage] = []

    def make(
        *,
        settings: Settings | None = None,
        catalog: FakeCatalog | None = None,
        hold_load: bool = False,
        size: tuple[int, int] | None = None,
    ) -> Stage:
        stage = Stage(tmp_path, settings=settings, catalog=catalog, hold_load=hold_load, size=size)
        stages.append(stage)
        return stage

    yield make
    for stage in stages:
        stage.close()


@pytest.fixture
def stage(make_stage: MakeStage) -> Stage:
    return make_stage()
