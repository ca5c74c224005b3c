"""A newcomer gets a model and an answer with the mouse, from a Hub on this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget
from typing_extensions import override

from app.conversation.tree import Setup
from app.hub.values import DownloadState
from app.paths import make_paths
from app.viewmodels.figures import file_size
from app.viewmodels.models import ModelPhase
from app.viewmodels.offer import OfferAction
from app.viewmodels.transcript import ItemStatus
from app.widgets.commands import CommandId
from app.widgets.models_window import ModelsTab, ModelsWindow
from engine.errors import ModelFolderError
from engine.local_models import LocalModels
from tests.fakes.engine_fixtures import TinyModel
from tests.fakes.gguf_models import tiny_gguf
from tests.fakes.hub_calls import call_in_process
from tests.fakes.hub_server import FakeHub, Repository, running_hub
from tests.fakes.real_window import RealWindow
from tests.fakes.tiny_model import Template

pytestmark = [
    pytest.mark.slow,
    pytest.mark.qt_log_ignore("does not support (raise|grabbing)", extend=True),
]


class WithoutDemo(LocalModels):
    """The models of this machine, without the demo model, which takes seconds to unpack."""

    @override
    def make_starter(self, progress: Callable[[float], None]) -> Path:
        raise ModelFolderError("The starter model is not installed.")


@pytest.fixture
def hub(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tiny_model: TinyModel
) -> Iterator[FakeHub]:
    home = tmp_path / "home"
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("HF_HOME", str(home / "hf"))
    with running_hub() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        folder = tiny_model("qwen3_5", Template.KEEPING)
        for suggestion in LocalModels(make_paths(tmp_path / "x")).suggestions():
            hub.add_folder(suggestion.repo_id, folder)
        yield hub


@pytest.fixture
def window(qapp: object, tmp_path: Path, hub: FakeHub) -> Iterator[RealWindow]:
    data_dir = tmp_path / "data"
    window = RealWindow(data_dir, WithoutDemo(make_paths(data_dir)))
    window.launch()
    yield window
    window.close()


@pytest.fixture
def in_process(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask the Hub in the process of the test, where a test is about what the window asks and shows."""
    call_in_process(monkeypatch)


class Mouse:
    """Clicks the middle of a visible widget, and counts the clicks."""

    num_clicks = 0

    def click(self, widget: QWidget) -> None:
        assert widget.isVisible()
        assert widget.isEnabled()
        self.num_clicks += 1
        middle = QPoint(widget.width() // 2, widget.height() // 2)
        QTest.mouseClick(widget, Qt.MouseButton.LeftButton, pos=middle)


def models_window(window: RealWindow) -> ModelsWindow:
    found = window.window.findChild(ModelsWindow)
    assert found is not None
    assert found.isVisible()
    return found


def test_newcomer_gets_an_answer_of_a_recommended_model_in_five_clicks(
    window: RealWindow, hub: FakeHub
) -> None:
    mouse = Mouse()
    window.wait_until(lambda: window.core.models.status.phase is ModelPhase.NONE)
    window.wait_until(window.pane.empty.model_note.isVisible)
    assert hub.requests == [], "it connects before a person asks for it"
    mouse.click(window.pane.empty.model_note.button)
    models = models_window(window)
    assert hub.requests == [], "it connects before a person asks for it"
    best = models.recommended.rows[0]
    states: list[str] = []
    noted = window.core.models.status_changed.connect(lambda: states.append(best.state.text()))
    mouse.click(best.buttons[OfferAction.DOWNLOAD])
    window.wait_until(lambda: window.core.models.status.phase is ModelPhase.READY)
    window.core.models.status_changed.disconnect(noted)
    assert any(state.startswith("Loading") for state in states)
    models.close()
    window.core.chat.set_setup(window.current, Setup(max_tokens=24))
    mouse.click(window.edit)
    window.type("Hello")
    mouse.click(window.pane.composer.button)
    window.wait_until(lambda: len(window.texts) == 2 and not window.core.turns.live)
    # Random weights may end an answer at once, but not with a problem.
    assert window.items[1].status is ItemStatus.COMPLETE
    assert mouse.num_clicks <= 5


def search(window: RealWindow, words: str) -> ModelsWindow:
    window.run(CommandId.GET_MODELS)
    models = models_window(window)
    models.show_tab(ModelsTab.SEARCH)
    QTest.keyClicks(models.field, words)
    QTest.keyClick(models.field, Qt.Key.Key_Return)
    window.wait_until(lambda: bool(models.found.rows))
    return models


@pytest.mark.usefixtures("in_process")
def test_rows_on_show_get_size_and_fit_unasked_and_rows_below_when_they_are_seen(
    window: RealWindow, hub: FakeHub
) -> None:
    folder = next(iter(hub.repositories.values()))
    hub.repositories |= {
        f"owner/Many-{number}-4bit": Repository(folder.files) for number in range(6)
    }
    window.run(CommandId.GET_MODELS)
    # Each row on show takes a call to the Hub.
    models_window(window).setFixedHeight(340)
    models = search(window, "many")
    first, *_, last = models.found.rows
    window.wait_until(lambda: first.sentence.text().startswith("Fits"))
    size = file_size(sum(len(content) for content in folder.files.values()))
    assert first.description.text().startswith(f"{size} · ")
    assert OfferAction.DOWNLOAD in first.buttons
    asked = {path for _, path in hub.requests if path.startswith("/api/models/owner/")}
    assert f"/api/models/{last.key}?blobs=true" not in {path.lower() for path in asked}
    assert OfferAction.SHOW in last.buttons
    models.found.bar.setValue(models.found.bar.maximum())
    window.wait_until(lambda: last.sentence.text().startswith("Fits"))


@pytest.mark.usefixtures("in_process")
def test_gguf_files_of_an_unknown_architecture_are_not_offered(
    window: RealWindow, hub: FakeHub
) -> None:
    for name, architecture in (("Known", "qwen35"), ("Unknown", "t9")):
        hub.repositories[f"someone/{name}-GGUF"] = Repository(
            {"m-Q4_K_M.gguf": b"x"}, tags=("gguf",), architecture=architecture
        )
    models = search(window, "known gguf")
    window.wait_until(lambda: len(models.found.rows) == 2)
    known, unknown = models.found.rows
    window.wait_until(lambda: "t9" in unknown.sentence.text())
    window.wait_until(lambda: OfferAction.CHOOSE_FILE in known.buttons)
    assert unknown.buttons == {}


@pytest.mark.usefixtures("in_process")
def test_gguf_repository_shows_the_fit_of_a_file(window: RealWindow, hub: FakeHub) -> None:
    hub.repositories["someone/Tiny-GGUF"] = Repository(
        {"m-Q4_K_M.gguf": tiny_gguf("qwen35").to_bytes()}, tags=("gguf",), architecture="qwen35"
    )
    (row,) = search(window, "tiny gguf").found.rows
    window.wait_until(lambda: row.sentence.text().startswith("m-Q4_K_M.gguf: Fits, with room"))
    assert OfferAction.CHOOSE_FILE in row.buttons


def test_download_can_be_paused_resumed_and_cleared_in_the_window(
    window: RealWindow, hub: FakeHub
) -> None:
    hub.slow_after = 300_000
    window.run(CommandId.GET_MODELS)
    models = models_window(window)
    models.recommended.rows[0].buttons[OfferAction.DOWNLOAD].click()
    models.show_tab(ModelsTab.DOWNLOADS)
    window.wait_until(lambda: bool(models.downloads.rows))
    row = models.downloads.rows[0]
    window.wait_until(lambda: window.core.hub.downloads[0].done_bytes > 200_000)
    line = window.window.sidebar.foot.downloads
    assert line.accessibleName().startswith("Downloading Qwen3.5")
    window.wait_until(lambda: bool(models.local.rows))
    assert OfferAction.PAUSE in models.local.rows[0].buttons
    assert models.local.rows[0].sentence.text() == "", "the model looks broken"
    row.buttons[OfferAction.PAUSE].click()
    window.wait_until(lambda: row.state.text() == "Paused")
    hub.slow_after = 0
    row.buttons[OfferAction.RESUME].click()
    window.wait_until(lambda: window.core.hub.downloads[0].state is DownloadState.DONE)
    window.wait_until(lambda: row.state.text() == "Complete")
    window.wait_until(lambda: window.window.toast.button.text() == "Use")
    assert not line.isVisible()
    row.buttons[OfferAction.CANCEL].click()
    window.wait_until(lambda: not models.downloads.rows)
    assert models.downloads.empty.isVisible()
    window.wait_until(lambda: bool(window.core.hub.cards))


def test_removed_model_is_gone_from_the_list_and_the_disk(
    window: RealWindow, hub: FakeHub, tmp_path: Path
) -> None:
    repo_id = window.core.hub.suggestions[0].repo_id
    window.core.hub.download(repo_id)
    window.wait_until(lambda: repo_id in window.core.hub.cards)
    card = window.core.hub.cards[repo_id]
    window.wait_until(lambda: window.core.models.status.phase is ModelPhase.READY)
    window.core.hub.look_for_installed()
    window.wait_until(lambda: bool(window.core.hub.installed))
    (model,) = (one for one in window.core.hub.installed if one.path == card.path)
    window.core.hub.plan_removal(model, window.core.hub.remove)
    window.wait_until(lambda: not window.core.hub.cards)
    (weights,) = (tmp_path / "home").rglob("*.safetensors")
    assert "Trash" in weights.parts
