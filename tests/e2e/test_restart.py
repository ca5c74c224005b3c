"""Chats after a restart of the app: their state comes from disk, and nothing is read again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.conversation.tree import Setup, shown_path
from app.paths import make_paths
from app.store.conversations import open_store
from app.theme.icons import Icon
from app.widgets.commands import CommandId
from app.widgets.deleted_sheet import DeletedSheet
from app.widgets.message_sheet import MessageSheet
from app.widgets.settings_window import SettingsWindow
from engine.usage import PromptPlan
from tests.fakes.engine_fixtures import TinyModel
from tests.fakes.real_window import RealWindow
from tests.fakes.sheets import press, sheet_in
from tests.fakes.tables import rest_in_soak
from tests.fakes.tiny_model import Template

LEFT = Qt.MouseButton.LeftButton

# The offscreen platform logs this message for every sheet.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.qt_log_ignore("does not support raise", extend=True),
]


@pytest.fixture(params=["llama", "qwen3_5"])
def model(request: pytest.FixtureRequest, tiny_model: TinyModel) -> Path:
    return tiny_model(request.param, Template.KEEPING)


@pytest.fixture
def real(model: Path, tmp_path: Path, qtbot: QtBot) -> Iterator[RealWindow]:
    """Return a window with a chat of two turns, after a restart of the app."""
    with closing(RealWindow(tmp_path)) as real:
        real.launch(model)
        real.core.chat.set_setup(real.current, Setup(max_tokens=6))
        for text in ("Tell me about radix trees", "And about rope?"):
            ask(real, qtbot, text)
        relaunch(real, model, qtbot)
        yield real


# The files of a chat are deleted in the same way for every model.
on_llama = pytest.mark.parametrize(
    "model", rest_in_soak(["llama", "qwen3_5"], "llama"), indirect=True
)


def relaunch(real: RealWindow, model: Path, qtbot: QtBot) -> None:
    real.close()
    real.launch(model)
    qtbot.waitUntil(lambda: real.core.models.status.facts is not None)
    real.wait_until(lambda: bool(real.items))
    real.settle()


def ask(real: RealWindow, qtbot: QtBot, text: str) -> PromptPlan:
    """Send a message in the shown chat; return where the prompt of its answer came from."""
    real.type(text)
    QTest.keyClick(real.edit, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: not real.core.turns.live)
    generation = shown_path(real.core.desk.get(real.current))[-1].generation
    assert generation is not None
    assert generation.usage is not None
    return generation.usage.plan


def records(home: Path) -> list[str]:
    """Return the names of the files of state on disk. The engine may delete some meanwhile."""
    walk = os.walk(make_paths(home).state_dir)
    return [name for _, _, names in walk for name in names if name.endswith(".safetensors")]


def test_chat_goes_on_after_a_restart_without_being_read_again(
    real: RealWindow, qtbot: QtBot
) -> None:
    real.core.preferences.change(read_ahead=False)
    plan = ask(real, qtbot, "And then?")
    assert plan.replayed == 0
    assert plan.restored_disk > 0
    line = real.items[-1].state_line
    assert line is not None
    assert "from disk" in line.text


@on_llama
def test_clear_deletes_the_files_and_no_chat(
    real: RealWindow, model: Path, qtbot: QtBot, tmp_path: Path
) -> None:
    assert records(tmp_path)
    texts = real.texts
    real.run(CommandId.SETTINGS)
    settings = real.window.findChild(SettingsWindow)
    assert isinstance(settings, SettingsWindow)
    QTest.mouseClick(settings.tabs[Icon.STORAGE], LEFT)
    page = settings.storage
    real.wait_until(lambda: " of " in page.memory.text())
    assert "this model" in page.used.text()
    assert page.written.text() != "Nothing yet"
    page.keep.click()
    QTest.mouseClick(page.clear, LEFT)
    page.findChildren(MessageSheet)[-1].accept()
    real.wait_until(lambda: not records(tmp_path))
    settings.close()
    assert real.texts == texts
    relaunch(real, model, qtbot)
    real.core.preferences.change(read_ahead=False)
    plan = ask(real, qtbot, "And then?")
    assert plan.restored_disk == 0
    assert not records(tmp_path), "the setting is off"


@on_llama
def test_files_of_a_deleted_chat_stay_until_it_is_deleted_for_good(
    real: RealWindow, tmp_path: Path
) -> None:
    real.run(CommandId.DELETE)
    real.core.bridge.engine.forget(
        real.core.library.deleted.all[0].summary.conversation_id,
        on_disk=False,
    )
    QTest.mouseClick(real.window.sidebar.foot.deleted, LEFT)
    sheet = real.window.findChildren(DeletedSheet)[-1]
    assert records(tmp_path)
    QTest.mouseClick(sheet.delete_button, LEFT)
    press(sheet_in(sheet), "Delete")
    real.wait_until(lambda: not records(tmp_path))


@on_llama
def test_files_of_a_chat_go_when_its_time_in_recently_deleted_is_over(
    real: RealWindow, model: Path, tmp_path: Path
) -> None:
    deleted = real.current
    real.run(CommandId.DELETE)
    real.close()
    assert records(tmp_path)
    with closing(open_store(make_paths(tmp_path).database, now=0.0).store) as store:
        store.delete(deleted, now=0.0)
    real.launch(model)
    real.wait_until(lambda: not records(tmp_path))
