from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Event

import pytest
from pytestqt.qtbot import QtBot
from typing_extensions import override

from app.stopping import StoppedError
from app.viewmodels.models import ModelPhase
from tests.fakes.ask_store import PATIENCE_S
from tests.fakes.rig import DEMO, FakeCatalog, Rig


class SlowCatalog(FakeCatalog):
    """A catalog whose import of the starter model takes PATIENCE_S if it is not stopped."""

    def __init__(self) -> None:
        super().__init__(cards=(), starter=DEMO)
        self.was_stopped = False

    @override
    def make_starter(self, progress: Callable[[float], None]) -> Path:
        try:
            for _ in range(round(1000 * PATIENCE_S)):
                progress(0.25)
                Event().wait(0.001)
        except StoppedError:
            self.was_stopped = True
            raise
        return super().make_starter(progress)


def test_close_stops_the_import_of_the_starter_model(qtbot: QtBot, tmp_path: Path) -> None:
    catalog = SlowCatalog()
    rig = Rig(tmp_path, catalog=catalog)
    rig.start()
    qtbot.waitUntil(lambda: rig.models.status.fraction == pytest.approx(0.25))
    assert rig.models.status.phase is ModelPhase.UNPACKING
    rig.close()
    assert catalog.was_stopped
