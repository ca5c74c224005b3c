"""The window about memory and storage, used with the mouse and the keyboard. The engine is a fake."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import QEvent, QPoint, Qt, QTimer
from PySide6.QtGui import QHelpEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from app.controllers import chat_states, memory_map as controller
from app.theme.icons import Icon
from app.theme.tokens import Space
from app.viewmodels.memory_map import MapRow
from app.widgets import memory_table
from app.widgets.commands import CommandId
from app.widgets.memory_window import MemoryView, MemoryWindow
from app.widgets.message_sheet import MessageSheet
from app.widgets.settings_window import SettingsWindow
from app.words import memory_map as words
from engine.cache_figures import HeldChat, HeldChats
from engine.events import Want
from engine.questions import Forget, MoveToDisk, ReportChats
from engine.types import ConversationId
from tests.app.conftest import MakeStage
from tests.fakes.pixels import pixels_of
from tests.fakes.stage import CTRL, Key, Stage

pytestmark = pytest.mark.qt_log_ignore("does not support raise", extend=True)
LEFT = Qt.MouseButton.LeftButton
NONE, SHIFT = Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.ShiftModifier
MB, GB = 10**6, 10**9


def chat(name: str, memory: int = 0, disk: int = 0, *, pinned: bool = False) -> HeldChat:
    return HeldChat(
        conversation_id=ConversationId(name),
        memory_bytes=memory,
        memory_tokens=memory // 100_000,
        disk_bytes=disk,
        disk_tokens=disk // 100_000,
        is_pinned=pinned,
        is_in_use=False,
    )


@pytest.fixture(autouse=True)
def no_other_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat_states, "LOOK_MS", 1_000_000)


@pytest.fixture
def chats(stage: Stage) -> list[str]:
    """Return the ids of two chats in the list. The second one is on show."""
    found: list[str] = []
    for text in ("About boats", "About trains"):
        stage.run(CommandId.NEW_CHAT)
        stage.chat(text, "Yes.")
        found.append(str(stage.core.library.current))
    return found


@pytest.fixture
def report(chats: list[str]) -> HeldChats:
    return HeldChats(
        chats=(
            chat(chats[0], 900 * MB, 300 * MB),
            chat(chats[1], 0, 500 * MB),
            chat("server:1", 200 * MB),
        ),
        shared_bytes=100 * MB,
        other_disk_bytes=2 * GB,
        model_bytes=5_200 * MB,
        budget_bytes=12 * GB,
    )


def opened(stage: Stage, report: HeldChats) -> MemoryWindow:
    stage.run(CommandId.MEMORY_MAP)
    window = stage.window.findChild(MemoryWindow)
    assert isinstance(window, MemoryWindow)
    answer(stage, report)
    return window


def answer(stage: Stage, report: HeldChats) -> None:
    stage.engine.answer(ReportChats, report)
    stage.settle()


def click(window: MemoryWindow, key: str, modifier: Qt.KeyboardModifier = NONE) -> None:
    QTest.mouseClick(window.map, LEFT, modifier, window.map.rect_of(key).center())


def num_asked(stage: Stage) -> int:
    return sum(isinstance(one, ReportChats) for one in stage.engine.questions)


def test_window_shows_chats_by_title_and_their_bytes(
    stage: Stage, report: HeldChats, chats: list[str]
) -> None:
    window = opened(stage, report)
    rows = {row.key: row for row in window.rows}

    assert sum(row.memory_bytes for row in window.rows) == report.total_bytes
    assert sum(row.disk_bytes for row in window.rows) == report.disk_bytes
    assert rows[chats[0]].title == "About boats"
    assert rows["server:1"].title == words.PROGRAM
    assert "1.2 GB of 12 GB in memory" in window.summary.text()
    click(window, chats[0])
    assert window.line.text() == "About boats: 9,000 tokens, 900 MB in memory, 300 MB on disk"
    QTest.mouseClick(window.tabs.buttons[MemoryView.TABLE], LEFT)
    assert window.table.topLevelItemCount() == len(window.rows)
    assert [item.text(0) for item in window.table.selectedItems()] == ["About boats"]


def test_double_click_opens_a_chat_and_enter_too(
    stage: Stage, report: HeldChats, chats: list[str]
) -> None:
    window = opened(stage, report)
    QTest.mouseDClick(window.map, LEFT, NONE, window.map.rect_of(chats[0]).center())
    assert stage.core.library.current == chats[0]
    click(window, chats[1])
    QTest.keyClick(window.map, Key.Key_Return)
    assert stage.core.library.current == chats[1]
    click(window, "server:1")
    assert not window.open_button.isEnabled()


def test_every_part_is_reached_with_the_arrow_keys(stage: Stage, report: HeldChats) -> None:
    window = opened(stage, report)
    window.map.setFocus()
    reached: set[str] = set()
    right, down, left = Key.Key_Right, Key.Key_Down, Key.Key_Left
    keys = (right, right, right, down, right, left, left, left)
    for key in keys:
        QTest.keyClick(window.map, key)
        reached.add(window.map.accessibleDescription())

    assert reached == {row.line for row in window.rows}
    QTest.keyClick(window.map, Key.Key_A, CTRL)
    assert window.line.text().startswith("3 chats selected")


def test_keep_move_and_forget_act_on_all_selected_chats(
    stage: Stage, report: HeldChats, chats: list[str]
) -> None:
    window = opened(stage, report)
    click(window, chats[0])
    click(window, chats[1], SHIFT)
    QTest.mouseClick(window.keep, LEFT)
    wants = [one for one in stage.engine.commands if isinstance(one, Want)]
    assert wants[-1].wanted.pinned == set(chats)

    QTest.mouseClick(window.move_button, LEFT)
    assert stage.engine.questions[-1] == MoveToDisk((ConversationId(chats[0]),))
    assert window.line.text() == words.moving("About boats", 1)
    moved = replace(report, chats=(chat(chats[0], 0, 1200 * MB), *report.chats[1:]))
    stage.engine.answer(MoveToDisk, moved)
    stage.settle()
    assert window.line.text() == words.moved("About boats", 1)

    QTest.mouseClick(window.forget, LEFT)
    sheet = window.findChild(MessageSheet)
    assert isinstance(sheet, MessageSheet)
    sheet.accept()
    forgotten = [one for one in stage.engine.questions if isinstance(one, Forget)]
    assert {one.conversation_id for one in forgotten} == set(chats)
    assert all(one.on_disk for one in forgotten)


def test_chat_that_could_not_be_moved_is_said_to_stay(
    stage: Stage, report: HeldChats, chats: list[str]
) -> None:
    window = opened(stage, report)
    click(window, chats[0])
    QTest.mouseClick(window.move_button, LEFT)
    stage.engine.answer(MoveToDisk, report)
    stage.settle()

    assert window.line.text() == words.not_moved("About boats", 1)


def test_sentence_about_a_move_goes_with_the_chat_or_the_model(
    stage: Stage, report: HeldChats, chats: list[str]
) -> None:
    window = opened(stage, report)
    click(window, chats[0])
    QTest.mouseClick(window.move_button, LEFT)
    stage.engine.answer(MoveToDisk, replace(report, chats=report.chats[1:]))
    stage.settle()
    assert window.line.text() == "", "it was forgotten before it was moved"

    stage.core.memory_map.ask()
    answer(stage, report)
    click(window, chats[0])
    QTest.mouseClick(window.move_button, LEFT)
    stage.core.memory_map.ask()
    answer(stage, HeldChats())
    assert window.line.text() == "", "the model was lost before it was moved"
    assert window.summary.text() == ""


def test_nothing_moves_while_nothing_is_kept_on_disk(
    stage: Stage, report: HeldChats, chats: list[str]
) -> None:
    stage.core.preferences.change(keep_on_disk=False)
    window = opened(stage, report)
    click(window, chats[0])

    assert not window.move_button.isEnabled()
    assert window.move_button.toolTip() == words.NO_DISK


def test_slider_is_the_setting_and_says_how_many_chats_fit(stage: Stage, report: HeldChats) -> None:
    window = opened(stage, report)
    # 8,000 tokens of 32,768 bytes, and four snapshots of 51 MB
    assert window.budget.text() == "Automatic, 12 GB: about 25 chats of 8,000 tokens"
    window.slider.setFocus()
    QTest.keyClick(window.slider, Key.Key_Home)
    assert stage.core.preferences.value.memory_gb == 2
    answer(stage, replace(report, budget_bytes=2 * GB))
    assert window.budget.text() == "2 GB: about 4 chats of 8,000 tokens"
    stage.core.preferences.change(memory_gb=8)
    assert window.slider.value() == 2


def end_wait(stage: Stage) -> None:
    """Let the time pass in which no further report is asked for."""
    (wait,) = (one for one in stage.core.memory_map.findChildren(QTimer) if one.isSingleShot())
    wait.stop()
    wait.timeout.emit()


def test_reports_are_asked_for_only_while_the_window_is_shown(
    make_stage: MakeStage, report: HeldChats, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controller, "LOOK_MS", 1_000_000)
    stage = make_stage()
    stage.chat("Hello", "Hi.")
    assert num_asked(stage) == 0, "before the window was opened"
    window = opened(stage, report)
    first = num_asked(stage)
    for _ in range(3):
        stage.chat("More", "Yes.")
    assert num_asked(stage) == first, "not again before the wait is over"
    end_wait(stage)
    assert num_asked(stage) == first + 1
    window.close()
    stage.chat("More", "Yes.")
    end_wait(stage)
    assert num_asked(stage) == first + 1, "not while it is hidden"


def test_escape_closes_the_window_in_both_views(stage: Stage, report: HeldChats) -> None:
    window = opened(stage, report)
    for view in MemoryView:
        QTest.mouseClick(window.tabs.buttons[view], LEFT)
        shown = window.map if view is MemoryView.MAP else window.table
        shown.setFocus()
        QTest.keyClick(shown, Key.Key_Escape)
        assert not window.isVisible()
        stage.run(CommandId.MEMORY_MAP)
        stage.settle()


def test_settings_open_the_window(stage: Stage) -> None:
    stage.run(CommandId.SETTINGS)
    settings = stage.window.findChild(SettingsWindow)
    assert isinstance(settings, SettingsWindow)
    QTest.mouseClick(settings.tabs[Icon.STORAGE], LEFT)
    QTest.mouseClick(settings.storage.show_chats, LEFT)
    window = stage.window.findChild(MemoryWindow)

    assert isinstance(window, MemoryWindow)
    assert window.isVisible()


def test_table_is_sorted_by_numbers(stage: Stage, report: HeldChats) -> None:
    window = opened(stage, report)
    QTest.mouseClick(window.tabs.buttons[MemoryView.TABLE], LEFT)
    table = window.table
    sizes = {row.title: row.memory_bytes for row in window.rows}
    shown = [table.topLevelItem(line) for line in range(table.topLevelItemCount())]
    found = [sizes[item.text(0)] for item in shown if item is not None]

    assert found == sorted(found, reverse=True)
    assert isinstance(window.rows[0], MapRow)


def test_title_that_is_cut_in_the_table_has_a_tooltip(
    stage: Stage, report: HeldChats, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = opened(stage, report)
    QTest.mouseClick(window.tabs.buttons[MemoryView.TABLE], LEFT)
    tips: list[str] = []

    def note(_widget: QWidget, _at: QPoint, text: str) -> None:
        tips.append(text)

    monkeypatch.setattr(memory_table, "show_tip", note)
    table = window.table
    item = table.topLevelItem(0)
    assert item is not None
    for title in ("A chat", "A long title " * 20):
        item.setText(0, title)
        at = table.visualItemRect(item).center()
        at.setX(Space.M)
        QApplication.sendEvent(table.viewport(), QHelpEvent(QEvent.Type.ToolTip, at, at))
    assert tips == ["", "A long title " * 20]


def test_headings_of_the_table_begin_where_their_columns_do(
    stage: Stage, report: HeldChats
) -> None:
    window = opened(stage, report)
    QTest.mouseClick(window.tabs.buttons[MemoryView.TABLE], LEFT)
    window.table.clearSelection()
    stage.settle()
    picture = pixels_of(window.table.grab().toImage())
    header = window.table.header().height()
    row = window.table.visualRect(window.table.model().index(0, 0)).height()
    inked = (picture != picture[header // 2, Space.XS])[:, Space.XS : -Space.XS]
    first = [
        int(part.any(axis=0).argmax())
        for part in (inked[8 : header - 4], inked[header + 4 : header + row - 4])
    ]
    assert abs(first[0] - first[1]) <= 2
