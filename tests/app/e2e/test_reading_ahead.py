"""Tests in the window: reading ahead, Keep in Memory for chats, and the option to keep thoughts."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel

from app.conversation.tree import Setup
from app.settings import Settings
from app.theme.tokens import Millis
from app.widgets.commands import CommandId
from engine.events import IdleKind, ReadAhead
from tests.app.conftest import MakeStage
from tests.fakes.stage import CTRL, Key, Stage

NEVER_MS = 60_000


def footer_words(stage: Stage) -> list[str]:
    return [label.text() for label in stage.window.sidebar.footer.findChildren(QLabel)]


def drafts(stage: Stage) -> list[ReadAhead]:
    return [ahead for ahead in stage.engine.read_aheads if ahead.is_draft]


def paste(stage: Stage, text: str) -> None:
    mime = QMimeData()
    mime.setText(text)
    QApplication.clipboard().setMimeData(mime)
    QTest.keyClick(stage.edit, Key.Key_V, CTRL)
    QApplication.clipboard().clear()


def test_pasted_draft_is_read_ahead_before_it_is_sent(
    make_stage: MakeStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Millis, "DRAFT_SAVE", NEVER_MS)
    stage = make_stage()
    stage.chat("Hello", "Hi")
    paste(stage, "word " * 200)
    stage.type("x")
    assert drafts(stage) == [], "read-ahead must wait for a pause in typing"
    stage.window.flush()
    (ahead,) = drafts(stage)
    assert [message.content for message in ahead.messages] == ["Hello", "Hi", "word " * 200 + "x"]
    QTest.keyClick(stage.edit, Key.Key_Return)
    stage.settle()
    assert stage.engine.submitted[-1].messages == ahead.messages


def test_quit_stores_the_draft_and_sends_no_read_ahead(
    make_stage: MakeStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Millis, "DRAFT_SAVE", NEVER_MS)
    stage = make_stage()
    paste(stage, "word " * 200)
    stage.close()
    assert stage.engine.read_aheads == []
    assert make_stage().rig.stored(lambda store: store.load(stage.current)).draft == "word " * 200


@pytest.mark.slow
def test_two_megabyte_draft_is_read_ahead_unchanged(stage: Stage) -> None:
    text = "word " * 400_000
    paste(stage, text)
    stage.wait_until(lambda: len(drafts(stage)) == 1)
    assert drafts(stage)[0].messages[-1].content == text


@pytest.mark.slow
def test_an_opened_chat_is_read_ahead_after_a_restart(make_stage: MakeStage) -> None:
    first = make_stage()
    first.chat("One", "1")
    first.close()
    stage = make_stage()
    stage.wait_until(lambda: stage.rows == ["TODAY", "One"])
    stage.click_row("One")
    stage.wait_until(lambda: len(stage.engine.read_aheads) == 1)
    ahead = stage.engine.read_aheads[0]
    assert [message.content for message in ahead.messages] == ["One", "1"]
    assert stage.engine.wanted.shown == ahead.conversation_id


def test_read_ahead_command_toggles_and_is_remembered(make_stage: MakeStage) -> None:
    stage = make_stage()
    action = stage.window.commands[CommandId.READ_AHEAD]
    assert action.isChecked()
    assert action.toolTip() != action.text(), "the tooltip must explain the command"
    stage.run(CommandId.READ_AHEAD)
    assert not action.isChecked()
    assert not stage.engine.wanted.idle_work
    stage.close()
    again = make_stage(settings=Settings(read_ahead=False))
    assert not again.window.commands[CommandId.READ_AHEAD].isChecked()


def test_idle_work_is_shown_below_the_model(stage: Stage) -> None:
    stage.chat("Hello", "Hi")
    stage.rig.core.idle.hold.setInterval(0)
    before = (stage.pane.view.geometry(), stage.window.sidebar.list.geometry())
    stage.engine.work_idly(512, 1840)
    stage.wait_until(lambda: "Reading ahead" in footer_words(stage)[1])
    assert "Reading ahead · 27%" in stage.window.sidebar.footer.accessibleName()
    assert "Reading ahead · 27%" in stage.window.toolbar.model_button.toolTip()
    assert stage.edit.hasFocus()
    assert (stage.pane.view.geometry(), stage.window.sidebar.list.geometry()) == before
    stage.engine.work_idly(0, 0, IdleKind.AUDIT)
    stage.wait_until(lambda: footer_words(stage)[1] == "Checking saved state")
    stage.engine.stop_idle_work()
    stage.wait_until(lambda: footer_words(stage)[1] == "Ready")


def test_loading_progress_replaces_the_note_of_idle_work(stage: Stage) -> None:
    stage.rig.core.idle.hold.setInterval(0)
    stage.engine.work_idly(512, 1840)
    stage.wait_until(lambda: "Reading ahead" in footer_words(stage)[1])
    stage.engine.hold_load = True
    stage.rig.models.choose(Path("/models/other"))
    assert footer_words(stage)[1] == "Loading"


def test_short_idle_work_is_not_shown(stage: Stage) -> None:
    idle = stage.rig.core.idle
    idle.hold.setInterval(NEVER_MS)
    stage.engine.work_idly(512, 1840)
    stage.wait_until(idle.hold.isActive)
    assert footer_words(stage)[1] == "Ready"
    stage.engine.stop_idle_work()
    stage.wait_until(lambda: not idle.hold.isActive())


def test_a_long_note_is_shortened_to_the_sidebar(stage: Stage) -> None:
    stage.rig.core.idle.hold.setInterval(0)
    stage.window.sidebar.setFixedWidth(200)
    stage.core.preferences.set_zoom(200)
    stage.engine.work_idly(123_456, 1_234_567)
    stage.wait_until(lambda: footer_words(stage)[1].endswith("…"))
    assert "Reading ahead · 9%" in stage.window.sidebar.footer.accessibleName()


def test_keep_ready_command_keeps_the_chat_ready(stage: Stage) -> None:
    action = stage.window.commands[CommandId.KEEP_READY]
    assert not action.isEnabled(), "an empty chat cannot be kept ready"
    stage.chat("One", "1")
    one = stage.current
    stage.run(CommandId.KEEP_READY)
    assert stage.engine.wanted.pinned == {one}
    assert stage.row("One").keep_ready
    stage.run(CommandId.NEW_CHAT)
    assert not action.isChecked()
    stage.click_row("One")
    assert action.isChecked()
    stage.run(CommandId.KEEP_READY)
    assert not stage.engine.wanted.pinned
    assert not stage.row("One").keep_ready


@pytest.mark.parametrize("place", ["composer", "inspector"])
def test_keep_thinking_is_set_from_composer_and_inspector(
    make_stage: MakeStage, place: str
) -> None:
    stage = make_stage(settings=Settings(inspector_visible=True))
    parts = {"composer": stage.composer, "inspector": stage.window.inspector}
    keep = parts[place].thinking.menu().actions()[-2]
    keep.trigger()
    assert stage.rig.current.setup == Setup(keep_thinking=True)
    assert all(part.thinking.menu().actions()[-2].isChecked() for part in parts.values())
    stage.chat("One", "1")
    assert stage.engine.submitted[0].keep_thinking
    keep.trigger()
    stage.chat("Two", "2")
    assert not stage.engine.submitted[1].keep_thinking
