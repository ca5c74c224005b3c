"""What is typed is kept, wherever the hands were before; the window does not jump under them."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest

from app.paths import make_paths
from app.theme.tokens import Size
from app.widgets.commands import CommandId
from engine.local_models import LocalModels
from tests.fakes.stage import Key, Stage

LEFT = Qt.MouseButton.LeftButton


def test_who_sends_and_stops_with_the_mouse_goes_on_typing(stage: Stage) -> None:
    stage.type("Hello")
    QTest.mouseClick(stage.composer.button, LEFT)
    stage.settle()
    QTest.mouseClick(stage.composer.button, LEFT)
    stage.settle()
    assert stage.edit.hasFocus()


def test_who_stops_with_the_button_s_key_goes_on_typing(stage: Stage) -> None:
    stage.send("Hello")
    stage.composer.button.setFocus()
    QTest.keyClick(stage.composer.button, Key.Key_Space)
    stage.settle()
    assert stage.engine.running is None
    assert stage.edit.hasFocus()


def test_letters_typed_in_the_transcript_are_written_in_the_composer(stage: Stage) -> None:
    stage.chat("Hello", "Yes.\n\n" * 80)
    view = stage.pane.view
    view.setFocus()
    QTest.keyClicks(view, "A")
    QTest.keyClicks(stage.edit, "nd")
    assert stage.edit.toPlainText() == "And"
    assert stage.edit.hasFocus()
    view.setFocus()
    QTest.keyClick(view, Key.Key_Home)
    QTest.keyClick(view, Key.Key_Space)
    assert stage.edit.toPlainText() == "And", "Space scrolls"
    assert view.verticalScrollBar().value() > 0


@pytest.mark.parametrize("command", [CommandId.DELETE, CommandId.DELETE_LAST])
def test_what_is_undone_with_a_key_is_offered_no_longer(stage: Stage, command: CommandId) -> None:
    stage.chat("Hello", "Yes.")
    stage.run(command)
    toasts = (stage.window.toast, stage.window.sidebar.toast)
    assert any(toast.isVisible() for toast in toasts)
    stage.run(CommandId.UNDO)
    assert not any(toast.isVisible() for toast in toasts)


def test_the_sidebar_is_as_wide_in_every_chat(stage: Stage) -> None:
    stage.window.resize(Size.WINDOW_MIN_WIDTH, Size.WINDOW_MIN_HEIGHT)
    stage.chat("Hello", "Yes.")
    before = stage.window.sidebar.width()
    stage.rig.library.rename(stage.current, "A long title " * 9)
    stage.settle()
    assert stage.window.sidebar.width() == before
    title = stage.window.toolbar.title_button
    right = title.mapTo(stage.window, QPoint(title.width(), 0)).x()
    model = stage.window.toolbar.model_button
    assert right <= model.mapTo(stage.window, QPoint(0, 0)).x()


def test_the_line_for_a_terminal_runs_where_its_program_is_only_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = tmp_path / "our programs"
    ours.mkdir()
    (ours / "hf").touch()
    monkeypatch.setattr(sys, "executable", str(ours / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    program, word, _model = shlex.split(LocalModels(make_paths(tmp_path)).suggestion())
    assert (program, word) == (str(ours / "hf"), "download")


def test_the_line_for_a_terminal_runs_where_only_the_app_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "Rejoinder"))
    monkeypatch.setenv("PATH", str(tmp_path))
    program, *words, _model = shlex.split(LocalModels(make_paths(tmp_path)).suggestion())
    assert program == str(tmp_path / "Rejoinder")
    assert words == ["-m", "huggingface_hub.cli.hf", "download"]
