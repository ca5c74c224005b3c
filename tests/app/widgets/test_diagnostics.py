"""The diagnostics file has figures, and nothing that a user wrote."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from PySide6.QtWidgets import QFileDialog

from app.bridge.reports import start_log
from app.settings import Settings
from app.viewmodels.diagnostics import redacted
from app.widgets.commands import CommandId
from app.words import diagnostics as words
from engine.errors import DiskError
from tests.app.conftest import MakeStage
from tests.fakes.stage import Stage

pytestmark = pytest.mark.qt_log_ignore("does not support raise", extend=True)


def saved(stage: Stage, path: Path) -> str:
    stage.window.commands[CommandId.DIAGNOSTICS].trigger()
    dialog = stage.window.findChildren(QFileDialog)[-1]
    dialog.fileSelected.emit(str(path))
    dialog.close()
    stage.wait_until(path.exists)
    return path.read_text("utf-8")


def test_file_has_no_text_of_a_user(make_stage: MakeStage, tmp_path: Path) -> None:
    root = logging.getLogger()
    before = list(root.handlers)
    (tmp_path / "logs").mkdir()
    start_log(tmp_path / "logs")
    secret = Settings(
        model_folders=("/Users/secretname/models",),
        model_name="Secretmodel",
        mirror="http://secrethost",
    )
    stage = make_stage(settings=secret)
    stage.chat("secretquestion", "secretanswer")
    stage.core.organiser.rename(stage.current, "secrettitle")
    stage.core.chat.set_system_prompt(stage.current, "secretprompt")
    stage.type("secretdraft")
    stage.pane.draft.flush()
    log = logging.getLogger("app.test")
    log.warning("%s cannot be read", "/Users/secretname/a folder/secretfile")
    log.warning("no conversation is called “secrettitle”")
    log.warning("refused: %r", DiskError("secretcause with words"))
    log.warning("two lines\nsecretline")
    try:
        int("secretvalue")
    except ValueError:
        log.exception("a background call failed")
    text = saved(stage, tmp_path / "out.txt")
    for handler in set(root.handlers) - set(before):
        root.removeHandler(handler)
        handler.close()

    assert "secret" not in text.lower()
    assert str(tmp_path) not in text
    assert "num_messages: 2" in text
    assert "model_folders: 1 entry" in text
    assert "mlx-lm: " in text
    assert "ValueError" in text
    assert "test_diagnostics.py:" in text
    assert "app.test: <path>" in text


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("2026-11-24 10:00:00,123 INFO MainThread app.main: the window is open", None),
        ("the rest of a message", ""),
        ('  File "/Users/me/x/app/main.py", line 7, in run', "  main.py:7 run"),
        ("    value = parse('what I wrote')", ""),
        ("KeyError: 'what I wrote'", "KeyError"),
        (
            "2026-11-24 10:00:00,123 INFO store app.store: kept ~/Library/My Chats/a b.db",
            "2026-11-24 10:00:00,123 INFO store app.store: kept <path>",
        ),
        (
            "2026-11-24 10:00:00,123 INFO store app.store: 'a' and \"b\" and “c”",
            "2026-11-24 10:00:00,123 INFO store app.store: <text> and <text> and <text>",
        ),
    ],
)
def test_redaction_keeps_what_no_user_wrote(line: str, kept: str | None) -> None:
    assert redacted([line]) == ([kept or line] if kept != "" else [])


def test_file_is_saved_if_the_database_cannot_be_used(
    make_stage: MakeStage, tmp_path: Path
) -> None:
    (tmp_path / "conversations.db").mkdir()
    stage = make_stage()
    stage.wait_until(lambda: stage.core.store.is_lost)

    text = saved(stage, tmp_path / "out.txt")

    assert "# Chats" in text
    assert "num_messages" not in text


def test_log_line_with_backslashes_after_a_quote_is_redacted_in_linear_time() -> None:
    # A pattern in which a backslash matches in two ways takes years for these.
    record = "2026-01-01 00:00:00,000 WARNING main app.test: "

    (kept,) = redacted([record + '"' + "\\a" * 500])
    (cut,) = redacted([record + "“" * 1_000_000])

    assert kept.startswith(record)
    assert cut == record + words.TEXT
