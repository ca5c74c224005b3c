from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.bridge.tasks import TaskLane
from app.controllers.exports import Exports
from engine.types import Problem


@pytest.fixture
def exports() -> Iterator[Exports]:
    lane = TaskLane("files")
    yield Exports(lane)
    lane.stop()


def test_save_replaces_an_existing_file(exports: Exports, qtbot: QtBot, tmp_path: Path) -> None:
    path = tmp_path / "code.py"
    path.write_text("before")
    saved: list[str] = []
    exports.saved.connect(saved.append)
    exports.save(path, "caf\u00e9\n")
    qtbot.waitUntil(lambda: saved == ["code.py"])
    assert path.read_bytes() == "caf\u00e9\n".encode()
    assert list(tmp_path.iterdir()) == [path]


def test_save_in_missing_folder_emits_the_problem(
    exports: Exports, qtbot: QtBot, tmp_path: Path
) -> None:
    path = tmp_path / "gone" / "code.py"
    failed: list[Problem] = []
    exports.failed.connect(failed.append)
    exports.save(path, "text")
    qtbot.waitUntil(lambda: bool(failed))
    assert str(path) in failed[0].cause
