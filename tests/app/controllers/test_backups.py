from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from app.store import backups as module
from app.store.backups import backups_of
from app.store.condition import ConditionNote
from app.store.errors import DatabaseDamagedError
from tests.app.conftest import MakeStage
from tests.fakes.stage import Stage


def database(stage: Stage) -> Path:
    return stage.rig.settings_path.with_name("conversations.db")


def look(stage: Stage) -> None:
    stage.core.backups.look()
    stage.wait_until(lambda: not stage.core.backups.is_running)


def test_backup_is_made_while_the_app_is_idle(stage: Stage) -> None:
    stage.chat("A question", "An answer")
    look(stage)
    assert len(backups_of(database(stage))) == 1


def test_no_backup_is_begun_while_an_answer_is_written(stage: Stage) -> None:
    stage.send("A question")
    stage.engine.write("An")
    stage.settle()
    look(stage)
    assert backups_of(database(stage)) == []
    stage.engine.finish()
    stage.settle()
    look(stage)
    assert len(backups_of(database(stage))) == 1


def test_failure_is_shown_once(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    problems: list[object] = []
    stage.core.failed.connect(problems.append)

    def fail(*_args: object, **_named: object) -> None:
        raise DatabaseDamagedError("It is damaged.")

    monkeypatch.setattr("app.controllers.backups.make_backup", fail)
    look(stage)
    look(stage)
    assert len(problems) == 1
    stage.wait_until(lambda: ConditionNote(database(stage)).is_damaged)


def test_running_copy_is_stopped_when_an_answer_begins(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PAUSE_S", 60)
    stage.chat("A question", "An answer")
    stage.core.backups.look()
    stage.send("Another question")
    stage.engine.write("An")
    stage.wait_until(lambda: not stage.core.backups.is_running)
    assert backups_of(database(stage)) == []


@pytest.mark.slow
@pytest.mark.parametrize("is_damaged", [False, True])
def test_large_database_of_a_killed_run_is_checked_after_the_start(
    make_stage: MakeStage, monkeypatch: pytest.MonkeyPatch, is_damaged: bool
) -> None:
    stage = make_stage()
    stage.chat("A question", "An answer")
    path = database(stage)
    stage.close()
    note = ConditionNote(path)
    note.remove()
    monkeypatch.setattr("app.store.opening.ALWAYS_CHECKED_BYTES", 0)
    if is_damaged:
        with closing(sqlite3.connect(path)) as other:
            (root,) = other.execute(
                "SELECT rootpage FROM sqlite_master WHERE name = 'messages_by_conversation'"
            ).fetchone()
        with path.open("r+b") as file:
            file.seek((root - 1) * 4096)
            file.write(b"\xa5" * 4096)

    stage = make_stage()
    if is_damaged:
        stage.wait_until(lambda: note.is_damaged)
        assert "open Rejoinder again" in stage.window.toast.text
        stage.close()
        stage = make_stage()
        stage.wait_until(stage.pane.app_notice.isVisible)
        stage.wait_until(lambda: "A question" in stage.rows)
        stage.click_row("A question")
        stage.wait_until(lambda: stage.texts == ["A question", "An answer"])
    else:
        stage.wait_until(lambda: stage.stored(lambda store: store.is_checked))
        stage.close()
        assert note.is_clean


def test_rescue_is_reported_in_the_window_with_a_button(
    make_stage: MakeStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = make_stage()
    stage.chat("A question", "An answer")
    path = database(stage)
    stage.close()
    with path.open("r+b") as file:
        file.write(b"\xa5" * 4096)
    opened: list[Path] = []
    monkeypatch.setattr("app.widgets.app_notice.show_folder", opened.append)

    stage = make_stage()
    notice = stage.pane.app_notice
    stage.wait_until(notice.isVisible)
    assert notice.text.startswith(
        "The file with your chats was damaged. 2 messages were saved, others may be missing."
        " The damaged file is kept as conversations.damaged-1.db."
    )
    stage.wait_until(lambda: "A question" in stage.rows)
    notice.button.click()
    assert opened == [path.parent]
