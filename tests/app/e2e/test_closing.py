"""Tests that closing the window, in any state, keeps all text and ends with exit status 0."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from PySide6.QtCore import Qt, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton, QSplitter, QToolButton, QWidget

from app.viewmodels.items import TranscriptItems
from app.viewmodels.transcript import Version
from app.widgets import quitting
from app.widgets.commands import CommandId
from app.widgets.message_sheet import MessageSheet
from app.widgets.send_button import SendButton
from app.widgets.transcript.rows.row import RowAction
from app.widgets.unsent_note import UnsentNote
from app.widgets.window_frame import FrameSaver, frame_text
from app.words import transcript as words
from tests.app.conftest import MakeStage
from tests.fakes.app_process import run_app
from tests.fakes.ask_store import PATIENCE_S
from tests.fakes.stage import Stage


def test_close_while_answering_keeps_the_text(make_stage: MakeStage) -> None:
    stage = make_stage()
    stage.send("Hello")
    stage.engine.write("Half an ans")
    stage.settle()
    conversation_id = stage.current
    stage.core.turns.ends.note_quit()
    killed = stage.stored(lambda store: store.load(conversation_id))
    (reply,) = [one for one in TranscriptItems().of(killed, {}) if one.cut]
    assert (reply.text, reply.cut) == ("Half an ans", words.APP_QUIT), "stored at once"
    stage.close()
    again = make_stage()
    assert [node.content for node in again.rig.stored_path(conversation_id)] == [
        "Hello",
        "Half an ans",
    ]
    assert conversation_id not in again.core.library.unseen.ids, "the cut answer was on show"
    again.rig.library.select(conversation_id)
    again.settle()
    assert (again.items[-1].cut, again.items[-1].can_continue) == (words.APP_QUIT, True)


def test_close_while_loading_returns_the_waiting_message_with_a_note(
    make_stage: MakeStage,
) -> None:
    stage = make_stage(hold_load=True)
    stage.send("Early bird")
    assert _note(stage).isHidden()
    settings = stage.rig.core.preferences
    stage.close()
    again = make_stage(settings=settings.value)
    again.wait_until(lambda: again.edit.toPlainText() == "Early bird")
    assert again.engine.submitted == []
    assert "Rejoinder closed before a model began to read it" in _note(again).sentence.text()
    QTest.keyClick(again.edit, Qt.Key.Key_Return)
    again.settle()
    assert _note(again).isHidden(), "it is sent now"


def test_close_while_answering_returns_the_queued_message_with_a_note(
    make_stage: MakeStage,
) -> None:
    again = _quit_with_a_queued_message(make_stage)
    assert not _note(again).isHidden()
    QTest.mouseClick(_note(again).first, Qt.MouseButton.LeftButton)
    again.settle()
    assert _note(again).isHidden()
    assert not again.stored(lambda store: store.load(again.current)).draft_was_sent


def test_close_while_an_answer_stops_returns_the_message_sent_since(
    make_stage: MakeStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = make_stage()
    stage.send("Hello")
    stage.engine.write("Half an ans")
    with monkeypatch.context() as patched:
        patched.setattr(
            stage.engine, "send", stage.engine.commands.append
        )  # it has not stopped yet
        stage.run(CommandId.STOP)
        stage.send("And then?")
    settings = stage.rig.core.preferences
    stage.close()
    assert len(stage.engine.submitted) == 1
    again = make_stage(settings=settings.value)
    again.wait_until(lambda: again.edit.toPlainText() == "And then?")
    assert again.texts == ["Hello", "Half an ans"]
    assert not _note(again).isHidden()


def test_note_ends_when_the_returned_message_is_queued_again(make_stage: MakeStage) -> None:
    again = _quit_with_a_queued_message(make_stage)
    again.click(RowAction.CONTINUE)
    again.settle()

    QTest.keyClick(again.edit, Qt.Key.Key_Return)

    again.settle()
    assert again.rig.desk.queued(again.current).text == "And then?"
    assert _note(again).isHidden()


def _quit_with_a_queued_message(make_stage: MakeStage) -> Stage:
    """Return the window of the next start, with "And then?" in the composer again."""
    stage = make_stage()
    stage.send("Hello")
    stage.engine.write("Half an ans")
    stage.send("And then?")
    settings = stage.rig.core.preferences
    stage.close()
    again = make_stage(settings=settings.value)
    again.wait_until(lambda: again.edit.toPlainText() == "And then?")
    return again


def _note(stage: Stage) -> UnsentNote:
    (note,) = stage.pane.findChildren(UnsentNote)
    return note


def test_answer_that_a_quit_cut_before_its_first_word_is_requested_again_in_one_click(
    make_stage: MakeStage,
) -> None:
    stage = make_stage()
    stage.send("Hello")
    stage.engine.prefill(1, 2)
    settings, conversation_id = stage.rig.core.preferences, stage.current
    stage.close()
    assert stage.engine.closed
    again = make_stage(settings=settings.value)
    again.wait_until(lambda: again.current == conversation_id)
    again.settle()
    assert again.items[-1].cut == words.APP_QUIT
    again.click(RowAction.RETRY)
    again.answer("Hi")
    assert again.texts == ["Hello", "Hi"]
    assert again.items[-1].version == Version(1, 1), "the empty version is gone"


def _answer_question(stage: Stage, word: str) -> str:
    """Press the button labelled `word` in the visible sheet. Return the first line of its text."""
    (sheet,) = [one for one in stage.window.findChildren(MessageSheet) if one.isVisible()]
    (button,) = [one for one in sheet.findChildren(QPushButton) if one.text() == word]
    asked = sheet.text.splitlines()[0]
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)
    stage.settle()
    return asked


def test_quit_while_answering_asks_for_confirmation(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    # QApplication.quit closes windows only while the event loop of the app runs, which no test
    # does.
    monkeypatch.setattr(quitting, "QApplication", SimpleNamespace(quit=stage.window.close))
    stage.send("Hello")
    stage.engine.write("Half an ans")
    stage.settle()
    for leave in (stage.window.close, stage.window.commands[CommandId.QUIT].trigger):
        leave()
        assert _answer_question(stage, "Cancel") == "1 answer is not complete."
        assert stage.window.isVisible()
    assert stage.engine.running is not None
    stage.window.close()
    _answer_question(stage, "Quit")
    assert not stage.window.isVisible()


def test_return_presses_the_focused_button_of_the_quit_sheet(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quitting, "QApplication", SimpleNamespace(quit=stage.window.close))
    stage.send("Hello")
    for key, stays in ((Qt.Key.Key_Tab, True), (Qt.Key.Key_Escape, True), (None, False)):
        stage.window.close()
        (sheet,) = [one for one in stage.window.findChildren(MessageSheet) if one.isVisible()]
        if key is not None:
            QTest.keyClick(sheet.focusWidget() or sheet, key)
        if sheet.isVisible():
            QTest.keyClick(sheet.focusWidget() or sheet, Qt.Key.Key_Return)
        stage.settle()
        assert stage.window.isVisible() is stays


def test_quit_with_a_changed_message_asks_for_confirmation(stage: Stage) -> None:
    stage.chat("One", "1")
    stage.run(CommandId.EDIT_LAST)
    QTest.keyClicks(stage.pane.view.focusWidget(), " and more")
    stage.window.close()
    assert _answer_question(stage, "Cancel") == "An edited message in “One” is not saved."
    stage.run(CommandId.NEW_CHAT)
    stage.window.close()
    assert _answer_question(stage, "Cancel") == "An edited message in “One” is not saved."
    stage.click_row("One")
    assert stage.pane.view.editor_host.edit is not None, "the edit is on show again"
    stage.window.close()
    assert _answer_question(stage, "Cancel") == "An edited message in “One” is not saved."
    QTest.keyClick(stage.edit, Qt.Key.Key_Escape)
    stage.run(CommandId.EDIT_LAST)
    stage.window.close()
    assert not stage.window.isVisible(), "an open editor without a change must not ask"


def test_quit_before_an_answer_begins_asks_for_confirmation(make_stage: MakeStage) -> None:
    stage = make_stage(hold_load=True)
    stage.send("Early bird")
    stage.window.close()
    assert _answer_question(stage, "Cancel") == "1 answer has not begun."
    assert stage.window.isVisible()
    stage.pane.stop()
    stage.settle()
    stage.window.close()
    assert not stage.window.isVisible(), "no answer is expected any more"


def test_size_of_the_window_is_saved_before_the_app_ends(make_stage: MakeStage) -> None:
    stage = make_stage()
    stage.window.resize(1000, 701)
    (timer,) = stage.window.findChildren(FrameSaver)[0].findChildren(QTimer)
    assert timer.isActive()
    timer.timeout.emit()
    assert stage.core.preferences.value.window_geometry == frame_text(stage.window)


def test_close_keeps_the_text_of_the_composer(make_stage: MakeStage) -> None:
    stage = make_stage()
    stage.type("unfinished")
    settings = stage.rig.core.preferences
    stage.close()
    again = make_stage(settings=settings.value)
    again.wait_until(lambda: again.edit.toPlainText() == "unfinished")
    assert again.texts == []


def test_every_control_has_an_accessible_name(stage: Stage) -> None:
    stage.chat("Hello", "Hi")
    nameless = [
        f"{type(widget).__name__} {widget.objectName()}"
        for kind in (QPushButton, QToolButton, SendButton)
        for widget in stage.window.findChildren(kind)
        if widget.isVisible() and not (widget.accessibleName() or _text(widget))
    ]
    assert nameless == []
    for named in (stage.edit, stage.list, stage.pane.view, stage.window.inspector.prompt):
        assert named.accessibleName()


def test_tab_goes_from_sidebar_to_transcript_to_composer(stage: Stage) -> None:
    stage.chat("Hello", "Hi")
    order: list[QWidget] = [stage.list]
    while (following := order[-1].nextInFocusChain()) not in (None, stage.list):
        order.append(following)
    places = [order.index(one) for one in (stage.list, stage.pane.view, stage.edit)]
    assert places == sorted(places)


def _text(widget: QWidget) -> str:
    return widget.text() if isinstance(widget, QPushButton) else ""


@pytest.mark.slow
def test_unknown_qt_platform_prints_reason_and_returns_1(tmp_path: Path) -> None:
    process = run_app(tmp_path, platform="nothing")
    _out, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    assert errors.startswith("Rejoinder can’t open its window: ")
    assert "Traceback" not in errors


def test_next_start_restores_scroll_position_and_sidebar_width(make_stage: MakeStage) -> None:
    stage = make_stage()
    stage.chat("One", "A line.\n\n" * 60)
    stage.chat("Two", "A line.\n\n" * 60)
    view = stage.pane.view
    view.verticalScrollBar().setValue(view.verticalScrollBar().maximum() // 3)
    splitter = stage.window.findChild(QSplitter)
    assert splitter is not None
    splitter.setSizes([310, 870])
    stage.settle()
    left = view.scroll_position()
    settings = stage.rig.core.preferences
    stage.close()
    again = make_stage(settings=settings.value)
    again.wait_until(lambda: len(again.items) == 4)
    again.wait_until(lambda: again.pane.view.statistics().is_idle)
    assert again.pane.view.scroll_position() == left
    assert again.window.sidebar.width() == 310
