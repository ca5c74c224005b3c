from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.controllers.idle import IdleController
from app.viewmodels.idle_note import idle_note
from engine.events import IdleKind, IdleWorking
from tests.fakes.rig import Rig

NEVER_MS = 60_000


@pytest.fixture
def rig(tmp_path: Path, qtbot: QtBot) -> Iterator[Rig]:
    rig = Rig(tmp_path)
    yield rig
    rig.close()


def heard(idle: IdleController) -> list[str]:
    notes: list[str] = []
    idle.note_changed.connect(lambda: notes.append(idle.note))
    return notes


def test_long_idle_work_is_shown_with_its_progress(rig: Rig, qtbot: QtBot) -> None:
    idle = rig.core.idle
    idle.hold.setInterval(0)
    notes = heard(idle)
    rig.engine.work_idly(0, 1840)
    qtbot.waitUntil(lambda: bool(notes))
    rig.engine.work_idly(512, 1840)
    qtbot.waitUntil(lambda: len(notes) == 2)
    rig.engine.work_idly(0, 0, IdleKind.AUDIT)
    qtbot.waitUntil(lambda: len(notes) == 3)
    rig.engine.stop_idle_work()
    qtbot.waitUntil(lambda: len(notes) == 4)
    assert notes == [
        "Reading ahead · 0%",
        "Reading ahead · 27%",
        "Checking saved state",
        "",
    ]


def test_reading_ahead_that_was_paused_continues_at_its_share() -> None:
    """A paused job continues as a new one. Its prompt is cached up to the pause."""
    continued = IdleWorking(None, IdleKind.READ_AHEAD, done=10, total=40, num_cached=60)
    assert idle_note(continued) == "Reading ahead · 70%"


def test_short_idle_work_is_never_shown(rig: Rig, qtbot: QtBot) -> None:
    idle = rig.core.idle
    idle.hold.setInterval(NEVER_MS)
    notes = heard(idle)
    rig.engine.work_idly(0, 1840)
    qtbot.waitUntil(idle.hold.isActive)
    rig.engine.stop_idle_work()
    qtbot.waitUntil(lambda: not idle.hold.isActive())
    assert notes == []


def test_short_pause_between_two_idle_tasks_does_not_hide_the_note(rig: Rig, qtbot: QtBot) -> None:
    idle = rig.core.idle
    idle.hold.setInterval(0)
    notes = heard(idle)
    rig.engine.work_idly(0, 1840)
    qtbot.waitUntil(lambda: bool(notes))
    idle.hold.setInterval(NEVER_MS)
    rig.engine.stop_idle_work()
    qtbot.waitUntil(idle.hold.isActive)
    rig.engine.work_idly(6, 600, IdleKind.DRAFT)
    qtbot.waitUntil(lambda: not idle.hold.isActive())
    assert notes == ["Reading ahead · 0%", "Reading ahead · 1%"]
