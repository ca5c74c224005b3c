"""The settings page about memory and storage, used with the mouse."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from app.theme.icons import Icon
from app.widgets.button import Button
from app.widgets.commands import CommandId
from app.widgets.message_sheet import MessageSheet
from app.widgets.settings_storage import StoragePage
from app.widgets.settings_window import SettingsWindow
from engine.cache_figures import NOTHING_CACHED, CacheReport
from engine.events import ModelUnloaded
from engine.questions import ClearDisk, ReportCache
from engine.wanted import DiskSettings
from tests.fakes.held_chats import report_all_in_memory
from tests.fakes.stage import Stage

pytestmark = pytest.mark.qt_log_ignore("does not support raise", extend=True)
LEFT = Qt.MouseButton.LeftButton
CACHED = replace(
    NOTHING_CACHED,
    total_bytes=1_200_000_000,
    budget_bytes=3_000_000_000,
    num_conversations=1,
    disk_bytes=450_000_000,
    disk_budget_bytes=20_000_000_000,
    disk_written_today_bytes=12_000_000,
    disk_model_bytes=320_000_000,
    disk_conversations=34,
)


def opened(stage: Stage) -> StoragePage:
    stage.run(CommandId.SETTINGS)
    return page_of(stage)


def page_of(stage: Stage) -> StoragePage:
    window = stage.window.findChild(SettingsWindow)
    assert isinstance(window, SettingsWindow)
    QTest.mouseClick(window.tabs[Icon.STORAGE], LEFT)
    return window.storage


def sent(stage: Stage) -> list[DiskSettings]:
    """Return the settings of the disk after each change of them."""
    return [disk for disk in stage.engine.changes(lambda one: one.disk) if disk is not None]


def test_disk_settings_are_sent_at_the_start_and_after_a_change(stage: Stage) -> None:
    (first,) = sent(stage)
    assert first.enabled
    assert first.budget_bytes is None
    page = opened(stage)
    QTest.mouseClick(page.limit.buttons[20], LEFT)
    assert sent(stage)[1:] == [replace(first, budget_bytes=20 * 10**9)]
    page.keep.click()
    assert not sent(stage)[-1].enabled
    assert not page.limit.isEnabled()


@pytest.mark.parametrize(("name", "clears"), [("Cancel", False), ("Remove", True)])
def test_state_on_disk_is_cleared_after_a_question(
    stage: Stage, name: str, *, clears: bool
) -> None:
    page = opened(stage)
    QTest.mouseClick(page.clear, LEFT)
    sheet = page.findChildren(MessageSheet)[-1]
    assert not any(isinstance(one, ClearDisk) for one in stage.engine.questions)
    button = next(one for one in sheet.findChildren(Button) if one.text() == name)
    QTest.mouseClick(button, LEFT)
    assert isinstance(stage.engine.questions[-1], ClearDisk) is clears


@pytest.mark.slow
def test_figures_are_requested_only_while_they_are_shown(stage: Stage) -> None:
    page = opened(stage)
    assert any(isinstance(one, ReportCache) for one in stage.engine.questions)
    assert page.memory.text() == "Nothing yet"
    assert page.used.text() == page.written.text() == "Measuring…"
    stage.engine.answer(ReportCache, CacheReport(CACHED))
    stage.settle()
    assert page.memory.text() == "1.2 GB of 3 GB"
    assert page.used.text() == "450 MB of 20 GB, this model 320 MB (34 chats)"
    assert page.written.text() == "12 MB"
    stage.rig.core.storage.watch(shown=True)
    full = replace(CACHED, disk_problem="Cached state is not kept on disk any more: full.")
    stage.engine.answer(ReportCache, CacheReport(full))
    stage.settle()
    assert page.used.text() == "Cached state is not kept on disk any more: full."
    page.window().close()
    count = stage.engine.questions.count(ReportCache())
    stage.wait(1100)
    assert stage.engine.questions.count(ReportCache()) == count


def test_bytes_of_pictures_are_measured_when_the_page_is_shown(stage: Stage) -> None:
    page = opened(stage)
    stage.wait_until(lambda: page.pictures.text() == "Nothing yet")
    page.window().close()
    folder = stage.core.pictures.folder
    folder.mkdir()
    for number in range(3):
        (folder / f"{number}.png").write_bytes(bytes(1_000_000))

    page = opened(stage)

    stage.wait_until(lambda: page.pictures.text() == "3 MB")


def test_bytes_of_pictures_are_measured_by_a_worker_thread(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[str] = []

    def total_bytes() -> int:
        names.append(threading.current_thread().name)
        return 7_000

    monkeypatch.setattr(stage.core.pictures, "total_bytes", total_bytes)
    page = opened(stage)
    stage.wait_until(lambda: page.pictures.text() == "7 KB")
    assert names[0].startswith("files")


UNLOADED = replace(
    CACHED,
    total_bytes=0,
    budget_bytes=0,
    num_conversations=0,
    disk_model_bytes=0,
    disk_conversations=0,
)


def test_page_without_a_model_has_the_size_on_disk(stage: Stage) -> None:
    page = opened(stage)
    for found, used, written in (
        (UNLOADED, "450 MB of 20 GB", "12 MB"),
        (replace(UNLOADED, disk_budget_bytes=0), "450 MB", "12 MB"),
        (NOTHING_CACHED, "Nothing yet", "Nothing yet"),
        (replace(NOTHING_CACHED, disk_budget_bytes=20 * 10**9), "Nothing yet", "Nothing yet"),
    ):
        page.hide()
        page.show()  # this asks for a report
        stage.engine.answer(ReportCache, CacheReport(found))
        stage.settle()
        assert (page.memory.text(), page.used.text()) == ("Nothing yet", used)
        assert page.written.text() == written


def test_page_keeps_the_size_on_disk_while_a_model_is_loading(stage: Stage) -> None:
    page = opened(stage)
    stage.engine.answer(ReportCache, CacheReport(CACHED))
    stage.settle()
    stage.engine.hold_load = True
    stage.core.models.load_again()
    stage.settle()
    assert (page.memory.text(), page.used.text()) == ("Nothing yet", "450 MB of 20 GB")
    assert page.written.text() == "12 MB"


def test_memory_line_shows_chats_in_memory_and_opens_storage(stage: Stage) -> None:
    line = stage.window.sidebar.memory
    assert not line.isVisible()
    stage.chat("Why?", "Because.")
    report_all_in_memory(stage, total_bytes=1_200_000_000, budget=3_000_000_000)
    assert line.text() == "1 chat in memory · 1.2 GB"
    assert line.toolTip().endswith("1.2 of 3 GB of memory used")
    stage.engine.hold_load = True
    stage.core.models.load_again()
    stage.settle()
    assert not line.isVisible(), "the chats of the model before are no longer in memory"
    stage.engine.finish_load()
    report_all_in_memory(stage, total_bytes=1_200_000_000)
    QTest.mouseClick(line, LEFT)
    window = stage.window.findChild(SettingsWindow)
    assert isinstance(window, SettingsWindow)
    assert window.tabs[Icon.STORAGE].isChecked()
    assert window.storage.isVisible()


def test_memory_line_is_hidden_after_the_model_was_unloaded(stage: Stage) -> None:
    stage.chat("Why?", "Because.")
    report_all_in_memory(stage, total_bytes=1_200_000_000)
    assert stage.window.sidebar.memory.isVisible()
    stage.engine.on_event(ModelUnloaded(loads_again=True))
    stage.settle()
    assert not stage.window.sidebar.memory.isVisible()
