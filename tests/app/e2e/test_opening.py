"""Tests of opening model folders and GGUF files from macOS or from a second process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QUrl
from PySide6.QtGui import QFileOpenEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QDialogButtonBox, QFileDialog

from app.hub.values import Download
from app.main import listen_to_others
from app.paths import make_paths
from app.viewmodels.models import ModelPhase
from app.widgets.application import Application
from app.widgets.commands import CommandId
from app.widgets.transcript.rows.row import RowAction
from engine.errors import GgufError
from engine.events import LoadModel
from engine.local_models import LocalModels, OpenedModel
from tests.app.conftest import MakeStage
from tests.fakes.gguf_writer import tiny_llama
from tests.fakes.model_folder import make_model
from tests.fakes.rig import FakeCatalog, Progress, card
from tests.fakes.stage import Stage
from tests.fakes.transcript_stage import LEFT

# The offscreen platform warns when a window is brought to the front.
pytestmark = pytest.mark.qt_log_ignore("does not support raise", extend=True)


@pytest.fixture
def stage(
    make_stage: MakeStage, qapp: Application, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Stage]:
    """Return a window that receives file-open events. Its catalog opens real models."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    models = LocalModels(make_paths(tmp_path / "data"))
    stage = make_stage(catalog=FakeCatalog(opens=models.open))
    listen_to_others(qapp, None, stage.window, stage.rig.core)
    yield stage
    qapp.files_opened.disconnect()


def double_click(path: Path) -> None:
    """Send the file-open event that macOS sends for a double-click in the Finder."""
    app = QCoreApplication.instance()
    assert app is not None
    QCoreApplication.sendEvent(app, QFileOpenEvent(str(path)))


def loads(stage: Stage) -> list[str]:
    return [command.path for command in stage.engine.commands if isinstance(command, LoadModel)]


def wait_for_load(stage: Stage, path: Path) -> None:
    stage.wait_until(lambda: loads(stage)[-1] == str(path))
    stage.settle()


def test_opened_model_folder_is_loaded_and_remembered(stage: Stage, tmp_path: Path) -> None:
    folder = make_model(tmp_path / "Opened")
    stage.window.hide()
    double_click(folder)
    assert stage.window.isVisible()
    wait_for_load(stage, folder)
    settings = stage.rig.core.preferences.value
    assert settings.model_folders == (str(folder),)
    assert settings.model_path == str(folder)
    assert stage.window.toolbar.model_button.text() == "Opened"


def test_opened_model_that_is_in_use_is_not_loaded_again(stage: Stage, tmp_path: Path) -> None:
    folder = make_model(tmp_path / "Opened")
    double_click(folder)
    wait_for_load(stage, folder)
    stage.send("Hello")
    stage.engine.write("Half an ans")
    before = loads(stage)
    double_click(folder)
    stage.rig.core.opening.close()
    stage.settle()
    assert loads(stage) == before
    assert stage.engine.running is not None


def test_opened_gguf_file_is_imported_and_loaded(stage: Stage, tmp_path: Path) -> None:
    file = tmp_path / "Tiny.gguf"
    file.write_bytes(tiny_llama().to_bytes())
    double_click(file)
    folder = tmp_path / "data" / "models" / "Tiny"
    wait_for_load(stage, folder)
    assert stage.rig.core.preferences.value.model_folders == (str(folder),)
    assert (folder / "model.safetensors").exists()


def test_opened_file_that_is_no_model_only_shows_a_notice(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "notes.gguf").touch()
    notice = stage.pane.app_notice
    before = loads(stage)
    double_click(tmp_path / "notes.gguf")
    stage.wait_until(notice.isVisible)
    assert "notes.gguf is empty." in notice.text
    assert not notice.button.isVisible()
    assert loads(stage) == before
    notice.close_button.click()
    assert not notice.isVisible()
    stage.chat("Hello", "Hi")
    assert stage.texts == ["Hello", "Hi"]


def new_chat(stage: Stage, _folder: Path) -> None:
    stage.run(CommandId.NEW_CHAT)


def send(stage: Stage, _folder: Path) -> None:
    stage.send("Hello")


def open_model(stage: Stage, folder: Path) -> None:
    double_click(make_model(folder / "Good"))


@pytest.mark.parametrize("act", [new_chat, send, open_model])
def test_notice_of_a_refused_file_goes_when_the_user_goes_on(
    stage: Stage, tmp_path: Path, act: Callable[[Stage, Path], None]
) -> None:
    stage.chat("First", "Yes")
    bad = tmp_path / "notes.gguf"
    bad.write_text("no model")
    double_click(bad)
    stage.wait_until(stage.pane.app_notice.isVisible)
    act(stage, tmp_path)
    stage.wait_until(lambda: not stage.pane.app_notice.isVisible())


def test_refused_file_leaves_the_notice_of_a_crash(stage: Stage, tmp_path: Path) -> None:
    notice = stage.pane.app_notice
    stage.chat("Hello", "Hi")
    notice.show_crash(tmp_path / "crash.log")
    crash = notice.text
    (tmp_path / "notes.gguf").touch()
    double_click(tmp_path / "notes.gguf")
    stage.wait_until(lambda: "notes.gguf is empty." in stage.window.toast.text)
    stage.run(CommandId.NEW_CHAT)
    assert notice.isVisible()
    assert notice.text == crash
    assert notice.button.isVisible()


def test_notice_of_a_lost_model_goes_when_a_model_is_loaded(stage: Stage, tmp_path: Path) -> None:
    stage.chat("First", "Yes")
    stage.engine.lose_model(GgufError("It is gone.").problem)
    stage.settle()
    assert stage.pane.notice.isVisible()
    double_click(make_model(tmp_path / "Good"))
    stage.wait_until(lambda: not stage.pane.notice.isVisible())


def test_part_of_a_model_that_cannot_be_used_is_said_once(stage: Stage, tmp_path: Path) -> None:
    fault = "The model’s head for faster answers can’t be used: it lacks a norm."
    stage.engine.facts = replace(stage.engine.facts, head_fault=fault)
    double_click(make_model(tmp_path / "Good"))
    stage.wait_until(lambda: stage.window.toast.text == fault)
    stage.window.toast.dismiss()
    stage.chat("Hello", "Hi")
    assert not stage.window.toast.isVisible()


def test_opened_web_address_is_ignored(stage: Stage) -> None:
    app = QCoreApplication.instance()
    assert app is not None
    QCoreApplication.sendEvent(app, QFileOpenEvent(QUrl("https://example.org/a.gguf")))
    stage.settle()
    assert not stage.pane.app_notice.isVisible()


class SlowImport:
    """A fake import that waits at 42 % until `goes_on` is set. If `model` is None, it fails."""

    def __init__(self, model: Path | None) -> None:
        self.goes_on = threading.Event()
        self._model = model

    def __call__(self, path: Path, folders: tuple[str, ...], progress: Progress) -> OpenedModel:
        progress(0.42)
        self.goes_on.wait(20)
        progress(0.43)
        if self._model is None:
            raise GgufError("It is cut short.")
        return OpenedModel(self._model, self._model)


@pytest.mark.parametrize("model", [card("Imported").path, None], ids=["imported", "refused"])
def test_chat_works_during_an_import(make_stage: MakeStage, model: Path | None) -> None:
    slow = SlowImport(model)
    stage = make_stage(catalog=FakeCatalog(opens=slow))
    footer, button = stage.window.sidebar.footer, stage.window.toolbar.model_button
    stage.rig.core.opening.open([Path("/downloads/Big.gguf")])
    stage.wait_until(lambda: "Importing 42% · Big" in footer.accessibleName())
    assert "Importing 42% · Big" in button.toolTip()
    stage.chat("Hello", "Hi")
    assert stage.texts == ["Hello", "Hi"]
    slow.goes_on.set()
    stage.wait_until(lambda: "Importing" not in footer.accessibleName())
    assert "Importing" not in button.toolTip()
    if model is None:
        assert "cut short" in stage.pane.app_notice.text
        assert stage.rig.models.status.name == "Tiny 9B 4-bit"
    else:
        wait_for_load(stage, model)
    assert stage.rig.models.status.phase is ModelPhase.READY


def test_downloaded_gguf_file_is_imported_and_leaves_the_model_in_use(
    make_stage: MakeStage,
) -> None:
    slow = SlowImport(card("Imported").path)
    stage = make_stage(catalog=FakeCatalog(opens=slow))
    stage.send("Hello")
    stage.engine.write("Half an ans")
    before, toast = loads(stage), stage.window.toast
    file = Download(repo_id="a/Imported-GGUF", chosen="Imported.gguf", folder="/downloads")
    stage.rig.core.hub.completed.emit(file)
    stage.wait_until(lambda: "Importing" in stage.window.sidebar.footer.accessibleName())
    assert not toast.isVisible()
    slow.goes_on.set()
    stage.wait_until(lambda: toast.text == "Imported is ready to use.")
    stage.answer("wer")
    assert stage.texts == ["Hello", "Half an answer"]
    assert loads(stage) == before


def test_quitting_cancels_an_import(make_stage: MakeStage) -> None:
    slow = SlowImport(card("Imported").path)
    stage = make_stage(catalog=FakeCatalog(opens=slow))
    footer = stage.window.sidebar.footer
    stage.rig.core.opening.open([Path("/downloads/Big.gguf")])
    stage.wait_until(lambda: "Importing" in footer.accessibleName())
    before = loads(stage)
    timer = threading.Timer(0.05, slow.goes_on.set)
    timer.start()
    stage.close()
    timer.join()
    assert loads(stage) == before
    assert not stage.pane.app_notice.isVisible()


def test_code_is_saved_in_the_downloads_folder_by_default(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The working folder cannot be the default: macOS starts apps with / as that folder."""
    downloads = tmp_path / "Downloads"
    downloads.mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    stage.chat("Code, please", "```python\nx = 1\n```")
    stage.click(RowAction.SAVE_CODE)
    (dialog,) = stage.window.findChildren(QFileDialog)
    (chosen,) = map(Path, dialog.selectedFiles())
    assert chosen.parent == downloads
    (buttons,) = dialog.findChildren(QDialogButtonBox)
    QTest.mouseClick(buttons.button(QDialogButtonBox.StandardButton.Save), LEFT)
    stage.wait_until(chosen.exists)
    stage.settle()
    assert chosen.read_text(encoding="utf-8") == "x = 1"
