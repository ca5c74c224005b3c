"""Tests of user actions on the window with real controllers and store, and a fake engine."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import QPointF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QLineEdit

from app.controllers.desk import KEPT
from app.theme.tokens import Size
from app.viewmodels.transcript import ItemStatus, Version
from app.widgets.button import Button
from app.widgets.commands import CommandId
from app.widgets.message_edit import MessageEdit
from app.widgets.send_button import SendState
from app.widgets.transcript.rows.row import RowAction
from engine.errors import ContextFullError, OutOfMemoryError
from engine.events import Cancel
from engine.usage import PromptPlan
from tests.app.conftest import MakeStage
from tests.fakes.stage import CTRL, Key, Stage
from tests.fakes.transcript_stage import targets


def test_a_first_message_is_sent_and_answered(stage: Stage) -> None:
    assert stage.pane.empty.heading.isVisible()
    assert not stage.pane.view.isVisible()
    stage.send("What is a radix tree?")
    assert stage.edit.toPlainText() == ""
    assert stage.pane.view.isVisible()
    stage.engine.write("A tree over ")
    stage.settle()
    assert stage.composer.button.state is SendState.STOP
    stage.answer("tokens.")
    assert stage.texts == ["What is a radix tree?", "A tree over tokens."]
    assert stage.composer.button.state is SendState.SEND
    assert not stage.composer.button.isEnabled()
    assert stage.rows == ["TODAY", "What is a radix tree?"]
    assert stage.window.toolbar.title_button.text() == "What is a radix tree?"


def test_state_line_shows_restored_and_read_tokens(stage: Stage) -> None:
    stage.chat("One", "1")
    first = stage.items[1].state_line
    assert first is not None
    assert first.text == "Read 4 tokens · first word after 110 ms"
    stage.engine.plan = PromptPlan(prompt_tokens=24, restored=20, replayed=0, read=4)
    stage.chat("Two", "2")
    second = stage.items[3].state_line
    assert second is not None
    assert second.text == "Restored 20 tokens · read 4 new tokens · first word after 110 ms"


def test_send_button_sends_then_stops_the_answer(stage: Stage) -> None:
    stage.type("Hello")
    QTest.mouseClick(stage.composer.button, Qt.MouseButton.LeftButton)
    stage.settle()
    stage.engine.write("Half")
    stage.settle()
    QTest.mouseClick(stage.composer.button, Qt.MouseButton.LeftButton)
    stage.settle()
    assert stage.items[1].status is ItemStatus.STOPPED
    assert stage.texts == ["Hello", "Half"]


def test_escape_stops_from_the_composer_and_from_the_transcript(stage: Stage) -> None:
    for place in (stage.edit, stage.pane.view):
        stage.send("Hello")
        stage.engine.write("Half")
        stage.settle()
        QTest.keyClick(place, Key.Key_Escape)
        stage.settle()
        assert stage.items[-1].status is ItemStatus.STOPPED
        stage.edit.setFocus()


def test_text_typed_in_an_editor_survives_deletion_and_undo(stage: Stage) -> None:
    stage.chat("One", "1")
    stage.click(RowAction.EDIT)
    QTest.keyClicks(editor(stage), " and more")
    stage.run(CommandId.DELETE_LAST)
    assert stage.texts == []
    stage.run(CommandId.UNDO)
    assert stage.texts == ["One", "1"]
    stage.click(RowAction.EDIT)
    assert editor(stage).toPlainText() == "One and more"
    stage.run(CommandId.NEW_CHAT)
    stage.click_row("One")
    assert editor(stage).toPlainText() == "One and more"
    stage.edit.setFocus()
    QTest.keyClick(stage.edit, Key.Key_Escape)
    stage.click(RowAction.EDIT)
    assert editor(stage).toPlainText() == "One", "Escape must discard the edit"
    QTest.keyClick(editor(stage), Key.Key_Escape)
    stage.run(CommandId.NEW_CHAT)
    stage.run(CommandId.UNDO)
    assert stage.texts == ["One", "1"]
    assert editor(stage).toPlainText() == "One and more", "Undo must bring the edit back"


def editor(stage: Stage) -> MessageEdit:
    """Return the visible message editor. A closed editor stays hidden until Qt deletes it."""
    fields = stage.pane.view.findChildren(MessageEdit)
    return next(one for one in fields if one.isVisible())


def test_notice_offers_details_only_if_the_problem_has_some(stage: Stage) -> None:
    stage.engine.hold_start = True
    notice, click = stage.pane.notice, Qt.MouseButton.LeftButton
    for details in ("", "RuntimeError('[metal::malloc]')\nin the runner"):
        stage.send("Hello")
        stage.engine.fail(OutOfMemoryError("None was left.", details=details).problem)
        stage.settle()
        assert notice.isVisible()
        assert notice.details == ""
        assert notice.details_button.isVisible() == bool(details)
        assert not notice.copy_button.isVisible()
        stage.edit.clear()
    QTest.mouseClick(notice.details_button, click)
    assert notice.details == details
    QTest.mouseClick(notice.copy_button, click)
    assert QApplication.clipboard().text() == details
    QTest.mouseClick(notice.details_button, click)
    assert notice.details == ""


def test_stop_button_in_the_state_line_stops_reading(stage: Stage) -> None:
    stage.chat("One", "1")
    stage.engine.plan = PromptPlan(prompt_tokens=9000, restored=0, replayed=0, read=9000)
    stage.send("Two")
    stage.engine.prefill(4096, 9000, 9.0)
    stage.settle()
    line = stage.items[-1].state_line
    assert line is not None
    assert line.text == "Reading 4,096 of 9,000 tokens · about 9 s left"
    stage.pane.view.setFocus()
    stage.click(RowAction.STOP)
    assert stage.items[-1].status is ItemStatus.STOPPED
    assert stage.edit.hasFocus()


def test_stop_is_shown_until_the_engine_has_ended_its_pass(stage: Stage) -> None:
    stage.send("Hello")
    stage.engine.prefill(4_096, 9_000, 9.2)
    stage.settle()
    stage.window.commands[CommandId.STOP].trigger()
    line = stage.items[-1].state_line
    assert line is not None
    assert line.text == "Stopping…"
    assert "Stopping…" in stage.window.sidebar.footer.accessibleName()
    stage.settle()
    assert stage.items[-1].status is ItemStatus.STOPPED


def test_continue_appends_to_the_stopped_answer(stage: Stage) -> None:
    stage.send("Count")
    stage.engine.write("One, ")
    stage.settle()
    assert not stage.window.commands[CommandId.CONTINUE].isEnabled()
    stage.run(CommandId.STOP)
    assert stage.items[-1].cut == "Stopped"
    seed = stage.engine.submitted[-1].sampling.seed
    stage.pane.view.setFocus()
    stage.run(CommandId.CONTINUE)
    assert stage.edit.hasFocus()
    assert stage.engine.submitted[-1].messages[-1].content == "One, "
    assert stage.engine.submitted[-1].sampling.seed == seed
    assert stage.texts == ["Count", "One, "]
    stage.engine.write("two, ")
    stage.settle()
    stage.pane.view.flush()
    assert stage.pane.view.text_of(stage.items[-1].key) == "One, two, "
    stage.run(CommandId.STOP)
    stage.pane.view.click_actions.requested.emit(stage.items[-1].key, RowAction.CONTINUE)
    stage.settle()
    stage.answer("three.")
    assert stage.texts == ["Count", "One, two, three."]
    assert stage.items[-1].version == Version(1, 1)
    assert not stage.window.commands[CommandId.CONTINUE].isEnabled()


def test_continue_of_a_long_answer_shows_its_progress_below_the_text(stage: Stage) -> None:
    stage.send("Count")
    stage.engine.write("One. \n\n" * 200)
    stage.settle()
    stage.run(CommandId.STOP)
    stage.run(CommandId.CONTINUE)
    stage.engine.prefill(1766, 2122, 12.0)
    stage.settle()
    item, view = stage.items[-1], stage.pane.view
    assert item.line_above is None
    assert item.line_below is not None
    assert item.line_below.text.startswith("Reading 1,766 of 2,122 tokens")
    view.verticalScrollBar().setValue(view.verticalScrollBar().maximum())
    (stop,) = targets(view, RowAction.STOP)
    assert view.viewport().rect().contains(stop)
    assert stop.y() > view.viewport().height() / 2
    stage.engine.write("Two.")
    stage.settle()
    assert stage.items[-1].line_below is None
    assert not list(targets(view, RowAction.STOP))
    stage.run(CommandId.STOP)
    stage.run(CommandId.CONTINUE)
    stage.engine.prefill(1, 2122, 12.0)
    stage.settle()
    (stop,) = targets(view, RowAction.STOP)
    QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=stop)
    stage.settle()
    assert stage.items[-1].cut == "Stopped"


def test_continue_uses_the_thinking_setting_of_the_stopped_answer(stage: Stage) -> None:
    def set_thinking(thinking: bool) -> None:
        setup = replace(stage.rig.current.setup, thinking=thinking)
        stage.rig.chat.set_setup(stage.current, setup)

    set_thinking(False)
    stage.send("Count")
    stage.engine.write("One, ")
    stage.run(CommandId.STOP)
    set_thinking(True)
    stage.run(CommandId.CONTINUE)
    assert [request.thinking for request in stage.engine.submitted] == [False, False]


def test_continue_of_an_answer_of_another_model_is_refused(stage: Stage) -> None:
    stage.send("Count")
    stage.engine.write("One, ")
    stage.run(CommandId.STOP)
    stage.engine.facts = replace(stage.engine.facts, template_hash="another")
    stage.rig.models.choose(Path("/models/other"))
    stage.settle()
    stage.wait_until(lambda: stage.rig.models.status.facts is not None)
    stage.run(CommandId.CONTINUE)
    assert stage.pane.notice.text.startswith("Another model began this answer.")
    assert stage.texts == ["Count", "One, "]
    assert len(stage.engine.submitted) == 1


def test_continue_uses_the_seed_of_the_stopped_answer(stage: Stage) -> None:
    stage.rig.chat.set_setup(stage.current, replace(stage.rig.current.setup, seed=5))
    stage.send("Count")
    stage.engine.write("One, ")
    stage.run(CommandId.STOP)
    stage.rig.chat.set_setup(stage.current, replace(stage.rig.current.setup, seed=42))
    stage.run(CommandId.CONTINUE)
    assert stage.engine.submitted[-1].sampling.seed == 5


def test_failed_continue_leaves_the_stopped_answer_unchanged(stage: Stage) -> None:
    stage.send("Count")
    stage.engine.write("One, ")
    stage.run(CommandId.STOP)
    stage.engine.hold_start = True
    stage.run(CommandId.CONTINUE)
    stage.engine.fail(OutOfMemoryError("8.1 GB were needed.").problem)
    stage.settle()
    assert stage.texts == ["Count", "One, "]
    assert stage.items[-1].status is ItemStatus.STOPPED
    assert stage.items[-1].can_continue
    assert "memory" in stage.pane.notice.text


def test_undo_restores_deleted_messages_with_all_below_them(stage: Stage) -> None:
    stage.chat("One", "1")
    stage.chat("Two", "2")
    view = stage.pane.view
    view.click_actions.requested.emit(stage.items[2].key, RowAction.DELETE)
    stage.settle()
    assert stage.texts == ["One", "1"]
    assert stage.window.toast.text == "Deleted 2 messages"
    view.click_actions.requested.emit(stage.items[0].key, RowAction.DELETE)
    stage.settle()
    assert stage.pane.empty.heading.isVisible()
    stage.edit.setFocus()
    for texts in (["One", "1"], ["One", "1", "Two", "2"]):
        QTest.keyClick(stage.edit, Key.Key_Z, CTRL)
        stage.settle()
        assert stage.texts == texts


def test_menu_copies_the_last_answer_and_deletes_the_last_message(stage: Stage) -> None:
    stage.chat("One", "1")
    stage.chat("Two", "**2**")
    stage.run(CommandId.COPY_LAST)
    assert QApplication.clipboard().text() == "**2**"
    stage.run(CommandId.DELETE_LAST)
    assert stage.texts == ["One", "1"]


def test_undo_shows_the_chat_of_the_restored_message(stage: Stage) -> None:
    for number in range(6):
        stage.run(CommandId.NEW_CHAT) if number else None
        stage.chat(f"Chat {number}", "Yes")
        stage.run(CommandId.DELETE_LAST)
    stage.run(CommandId.NEW_CHAT)
    for number in reversed(range(6)):
        stage.run(CommandId.UNDO)
        assert stage.texts == [f"Chat {number}", "Yes"]
        stage.run(CommandId.UNDO)
        assert stage.texts == []


def test_delete_and_undo_are_refused_while_an_answer_is_written(stage: Stage) -> None:
    stage.chat("One", "1")
    stage.run(CommandId.REGENERATE)
    stage.answer("1b")
    assert [item.can_delete for item in stage.items] == [True, True]
    stage.pane.view.click_actions.requested.emit(stage.items[1].key, RowAction.DELETE)
    stage.settle()
    assert stage.texts == ["One", "1"]
    stage.send("Two")
    assert not any(item.can_delete for item in stage.items)
    deletion = next(one for one in stage.core.undo.entries if one.name == "Delete Message")
    assert not deletion.undo()
    stage.settle()
    assert stage.window.toast.text.startswith("An answer is being written in that chat.")
    stage.answer("2")
    assert deletion.undo()
    stage.settle()
    assert stage.texts == ["One", "1b"]


def test_queued_messages_are_sent_when_the_answer_ends(stage: Stage) -> None:
    stage.send("One")
    stage.engine.write("1")
    stage.send("Two")
    stage.send("and three")
    assert stage.pane.queued.isVisible()
    assert stage.pane.queued.text == "Two and three"
    notes = [label.text() for label in stage.pane.queued.findChildren(QLabel) if label.isVisible()]
    assert "Sent when this answer is finished" in notes
    bubble = stage.pane.queued.findChild(QLabel)
    assert isinstance(bubble, QLabel)
    assert bubble.width() < stage.pane.queued.width() / 2, (
        "the bubble must be only as wide as its text"
    )
    view, right = stage.pane.view, bubble.mapTo(stage.pane, bubble.rect().topRight()).x()
    assert right + 1 == (view.width() + Size.COLUMN) // 2, (
        "the bubble must end at the right edge of the column"
    )
    assert stage.edit.toPlainText() == ""
    stage.type("half a thought")
    stage.answer("")
    assert stage.texts == ["One", "1", "Two\n\nand three", ""]
    assert not stage.pane.queued.isVisible()
    assert stage.edit.toPlainText() == "half a thought"
    stage.answer("2")
    stage.run(CommandId.NEW_CHAT)
    stage.click_row("One")
    assert stage.edit.toPlainText() == "half a thought"


def test_queued_message_returns_to_composer_on_edit_button_and_on_stop(
    stage: Stage,
) -> None:
    stage.send("One")
    stage.engine.write("1")
    stage.send("Two")
    QTest.mouseClick(stage.pane.queued.edit_button, Qt.MouseButton.LeftButton)
    assert stage.edit.toPlainText() == "Two"
    assert not stage.pane.queued.isVisible()
    QTest.keyClick(stage.edit, Key.Key_Return)
    stage.settle()
    stage.type("more")
    stage.run(CommandId.STOP)
    assert stage.edit.toPlainText() == "Two\n\nmore"
    assert stage.texts == ["One", "1"]


@pytest.mark.parametrize("by_key", [True, False])
def test_edit_of_the_last_message_takes_a_queued_message_back(
    stage: Stage,
    by_key: bool,
) -> None:
    stage.send("One")
    stage.engine.write("1")
    assert not stage.window.commands[CommandId.EDIT_LAST].isEnabled()
    stage.send("Two")
    if by_key:
        QTest.keyClick(stage.edit, Key.Key_Up)
    else:
        stage.run(CommandId.EDIT_LAST)
    assert stage.edit.toPlainText() == "Two"
    assert stage.edit.hasFocus()
    assert not stage.pane.queued.isVisible()
    assert not stage.window.commands[CommandId.EDIT_LAST].isEnabled()
    stage.answer("")
    assert stage.texts == ["One", "1"]


def test_queued_message_is_in_the_composer_while_the_answer_stops(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.send("One")
    stage.engine.write("1")
    stage.send("Two")
    with monkeypatch.context() as patched:
        patched.setattr(
            stage.engine, "send", stage.engine.commands.append
        )  # it has not stopped yet
        stage.run(CommandId.STOP)
    assert stage.edit.toPlainText() == "Two"
    assert not stage.pane.queued.isVisible()
    stage.type(" or three")
    stage.engine.send(stage.engine.commands.pop())
    stage.settle()
    assert stage.edit.toPlainText() == "Two or three"


@contextmanager
def _stopping(stage: Stage) -> Generator[None]:
    """Stop the answer. The engine ends it after the body of the with statement."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(stage.engine, "send", stage.engine.commands.append)
        stage.run(CommandId.STOP)
        cancel = [one for one in stage.engine.commands if isinstance(one, Cancel)][-1]
        yield
    stage.engine.send(cancel)
    stage.settle()


def test_message_sent_while_the_answer_stops_is_sent_after_the_stop(stage: Stage) -> None:
    stage.send("One")
    stage.engine.write("1")
    with _stopping(stage):
        stage.send("Two")
        assert stage.pane.queued.text == "Two"
    assert stage.texts == ["One", "1", "Two", ""]
    assert stage.edit.toPlainText() == ""
    assert not stage.pane.queued.isVisible()
    stage.answer("2")
    assert stage.texts == ["One", "1", "Two", "2"]


def test_message_sent_while_an_unstarted_answer_stops_is_sent_alone(stage: Stage) -> None:
    stage.chat("Zero", "0")
    stage.engine.hold_start = True
    stage.send("One")
    stage.send("One and a half")
    with _stopping(stage):
        stage.edit.selectAll()
        stage.send("Two")
    stage.engine.begin()
    stage.answer("2")
    assert stage.texts == ["Zero", "0", "Two", "2"]
    assert stage.edit.toPlainText() == "One"
    stage.run(CommandId.UNDO)
    assert stage.texts == ["Zero", "0"]
    stage.run(CommandId.UNDO)
    assert stage.texts == [], "the step of the refused message is gone"


def test_message_sent_while_a_new_version_stops_follows_the_version_before(stage: Stage) -> None:
    stage.chat("One", "1")
    stage.run(CommandId.REGENERATE)
    with _stopping(stage):
        stage.send("Two")
    stage.answer("2")
    assert stage.texts == ["One", "1", "Two", "2"]
    assert [one.content for one in stage.engine.submitted[-1].messages] == ["One", "1", "Two"]


@pytest.mark.parametrize("written", ["", "Half an ans"])
def test_regenerate_while_the_answer_stops_follows_the_stop(stage: Stage, written: str) -> None:
    stage.chat("One", "1")
    stage.run(CommandId.REGENERATE)
    if written:
        stage.engine.write(written)
        stage.settle()
    with _stopping(stage):
        stage.run(CommandId.REGENERATE)
    stage.answer("1c")
    assert stage.texts == ["One", "1c"]
    assert stage.items[-1].version.count == (3 if written else 2)
    assert len(stage.engine.submitted) == 3


def test_regenerate_while_an_unstarted_answer_stops_leaves_the_answer_before(stage: Stage) -> None:
    stage.chat("One", "1")
    stage.engine.hold_start = True
    stage.send("Two")
    with _stopping(stage):
        stage.run(CommandId.REGENERATE)
    assert stage.texts == ["One", "1"]
    assert stage.edit.toPlainText() == "Two"
    assert len(stage.engine.submitted) == 2


def test_answers_end_in_chats_that_are_closed_then(stage: Stage) -> None:
    """A chat that was left is closed when its answer has ended, if many others are open."""
    for number in range(2 * KEPT):
        stage.send(f"Question {number}")
        stage.settle()
        stage.run(CommandId.NEW_CHAT)
    for number in range(2 * KEPT):
        stage.answer(f"Answer {number}")

    assert len(stage.core.desk.ids) <= KEPT + 1


def test_regenerate_ends_at_a_second_stop(stage: Stage) -> None:
    stage.send("One")
    stage.engine.write("1")
    with _stopping(stage):
        stage.run(CommandId.REGENERATE)
        QTest.keyClick(stage.edit, Key.Key_Escape)
    assert stage.texts == ["One", "1"]
    assert len(stage.engine.submitted) == 1


def test_message_sent_while_the_answer_stops_returns_at_a_second_stop(stage: Stage) -> None:
    stage.send("One")
    stage.engine.write("1")
    with _stopping(stage):
        stage.send("Two")
        QTest.keyClick(stage.edit, Key.Key_Escape)
        assert stage.edit.toPlainText() == "Two"
    assert stage.texts == ["One", "1"]


def test_sent_queued_message_does_not_come_back_as_a_draft(stage: Stage) -> None:
    stage.send("One")
    stage.engine.write("1")
    stage.type("Two")
    stage.pane.draft.flush()  # store the draft now, not only after a pause in typing
    stage.settle()
    QTest.keyClick(stage.edit, Key.Key_Return)
    stage.settle()
    stored = stage.rig.stored(lambda store: store.load(stage.current))
    assert stored.draft == "Two"
    stage.answer("")
    stage.answer("2")
    stage.run(CommandId.NEW_CHAT)
    stage.click_row("One")
    assert stage.edit.toPlainText() == ""


def test_queued_message_returns_to_composer_if_the_turn_before_is_refused(stage: Stage) -> None:
    stage.chat("One", "1")
    stage.engine.hold_start = True
    stage.send("Two")
    stage.send("Three")
    stage.engine.fail(OutOfMemoryError("8.1 GB were needed.").problem)
    stage.settle()
    assert stage.texts == ["One", "1"]
    assert stage.edit.toPlainText() == "Two\n\nThree"
    assert not stage.pane.queued.isVisible()
    assert len(stage.engine.submitted) == 2


def test_refused_and_queued_messages_of_a_hidden_chat_are_its_draft_in_the_order_of_sending(
    stage: Stage,
) -> None:
    stage.chat("One", "1")
    stage.engine.hold_start = True
    stage.send("Two")
    stage.send("Three")
    stage.type("Four")
    stage.run(CommandId.NEW_CHAT)
    stage.engine.fail(OutOfMemoryError("8.1 GB were needed.").problem)
    stage.settle()
    stage.click_row("One")
    assert stage.edit.toPlainText() == "Two\n\nThree\n\nFour"
    assert not stage.pane.queued.isVisible()


def test_queued_message_returns_to_composer_if_another_version_is_shown(stage: Stage) -> None:
    stage.chat("One", "1")
    stage.run(CommandId.REGENERATE)
    stage.send("About the second")
    stage.run(CommandId.PREVIOUS_VERSION)
    assert not any(item.can_delete or item.can_continue for item in stage.items)
    stage.answer("1b")
    assert stage.edit.toPlainText() == "About the second"
    assert stage.texts == ["One", "1"]


def test_queued_message_of_a_hidden_chat_is_sent_or_kept_as_draft(
    stage: Stage,
) -> None:
    stage.send("One")
    one = stage.current
    stage.send("Two")
    assert stage.rig.stored(lambda store: store.load(one)).draft == "Two"
    stage.run(CommandId.NEW_CHAT)
    stage.answer("1")
    assert [message.content for message in stage.engine.submitted[-1].messages] == [
        "One",
        "1",
        "Two",
    ]
    stage.settle()
    assert stage.rig.stored(lambda store: store.load(one)).draft == ""
    stage.engine.fail(OutOfMemoryError("8.1 GB were needed.").problem)
    stage.settle()
    stage.click_row("One")
    stage.send("Three")
    stage.send("Four")
    stage.run(CommandId.NEW_CHAT)
    stage.engine.fail(OutOfMemoryError("8.1 GB were needed.").problem)
    stage.settle()
    stage.click_row("One")
    assert stage.edit.toPlainText() == "Four"


def test_regenerate_adds_a_version_and_commands_switch_versions(stage: Stage) -> None:
    stage.chat("Hello", "First")
    stage.run(CommandId.REGENERATE)
    stage.answer("Second")
    assert stage.texts == ["Hello", "Second"]
    assert stage.items[1].version == Version(2, 2)
    stage.run(CommandId.PREVIOUS_VERSION)
    assert stage.texts == ["Hello", "First"]
    stage.pane.view.click_actions.requested.emit(stage.items[1].key, RowAction.NEXT_VERSION)
    stage.settle()
    assert stage.texts == ["Hello", "Second"]


def test_up_key_edits_the_last_message_as_a_new_version(stage: Stage) -> None:
    stage.chat("Capital of France?", "Paris")
    QTest.keyClick(stage.edit, Key.Key_Up)
    assert stage.items[0].editing
    stage.pane.view.editor_host.submitted.emit(stage.items[0].key, "Capital of Spain?")
    stage.settle()
    stage.answer("Madrid")
    assert stage.texts == ["Capital of Spain?", "Madrid"]
    assert stage.items[0].version == Version(2, 2)
    assert not stage.items[0].editing


def test_cancelled_edit_adds_no_version(stage: Stage) -> None:
    stage.chat("Hello", "Hi")
    stage.run(CommandId.EDIT_LAST)
    stage.pane.view.editor_host.cancelled.emit(stage.items[0].key)
    assert not stage.items[0].editing
    assert stage.items[0].version == Version(1, 1)


def test_empty_edit_is_refused_and_its_editor_stays_open(stage: Stage) -> None:
    stage.chat("Hello", "Hi")
    stage.run(CommandId.EDIT_LAST)
    stage.pane.view.editor_host.submitted.emit(stage.items[0].key, "  ")
    assert stage.items[0].editing
    assert "empty" in stage.pane.notice.text


def test_switching_chats_during_an_answer_loses_no_text(stage: Stage) -> None:
    stage.send("Slow")
    stage.engine.write("The ")
    stage.run(CommandId.NEW_CHAT)
    assert stage.pane.empty.heading.isVisible()
    assert stage.row("Slow").activity == "Answering", "a first word gives no rate"
    stage.engine.write("answer")
    stage.settle()
    stage.click_row("Slow")
    assert stage.texts == ["Slow", "The answer"]
    assert stage.composer.button.state is SendState.STOP
    stage.run(CommandId.NEW_CHAT)
    stage.answer(" is 42.")
    assert stage.row("Slow").unseen
    assert stage.window.toast.text == "“Slow” has finished"
    stage.click_row("Slow")
    assert not stage.row("Slow").unseen
    assert not stage.window.toast.isVisible(), "the answer is seen"
    assert stage.texts == ["Slow", "The answer is 42."]


def test_answer_that_ends_while_the_window_is_closed_is_unseen_until_it_opens(stage: Stage) -> None:
    stage.send("Slow")
    stage.window.hide()
    stage.answer("Done")
    assert stage.row("Slow").unseen
    stage.window.show()
    stage.settle()
    assert not stage.row("Slow").unseen


def test_message_in_a_second_chat_waits_for_the_running_answer(stage: Stage) -> None:
    stage.send("First")
    stage.run(CommandId.NEW_CHAT)
    stage.send("Second")
    line = stage.items[1].state_line
    assert line is not None
    assert line.text == "Waiting · 1 answer ahead"
    stage.answer("1")
    stage.answer("2")
    assert stage.texts == ["Second", "2"]


def test_failed_answer_has_its_problem_and_can_be_retried(stage: Stage) -> None:
    stage.send("Hello")
    problem = OutOfMemoryError("8.1 GB were needed.").problem
    stage.engine.fail(problem)
    stage.settle()
    assert stage.items[1].problem == problem
    stage.pane.view.click_actions.requested.emit(stage.items[1].key, RowAction.RETRY)
    stage.settle()
    stage.answer("Hi")
    assert stage.texts == ["Hello", "Hi"]


def test_message_refused_by_a_full_context_returns_and_new_chat_is_offered(stage: Stage) -> None:
    stage.chat("Hello", "Hi")
    stage.engine.hold_start = True
    stage.send("Too much")
    stage.engine.fail(ContextFullError("33,012 tokens; the model takes 32,768.").problem)
    stage.settle()
    assert stage.texts == ["Hello", "Hi"]
    assert stage.edit.toPlainText() == "Too much"
    assert "33,012" in stage.pane.notice.text
    assert "Edit an earlier message" in stage.pane.notice.text
    stage.pane.view.setFocus()
    QTest.mouseClick(stage.pane.notice.button, Qt.MouseButton.LeftButton)
    assert stage.edit.hasFocus()
    stage.settle()
    assert stage.pane.empty.heading.isVisible()
    assert stage.edit.toPlainText() == "Too much"


def test_returned_text_is_put_before_text_typed_after_sending(stage: Stage) -> None:
    stage.engine.hold_start = True
    stage.send("Too much")
    stage.type("more")
    stage.engine.fail(ContextFullError("33,012 tokens; the model takes 32,768.").problem)
    stage.settle()
    assert stage.edit.toPlainText() == "Too much\n\nmore"


def test_each_chat_keeps_its_draft(make_stage: MakeStage) -> None:
    stage = make_stage()
    stage.chat("First chat", "Yes")
    stage.type("draft of the first")
    stage.run(CommandId.NEW_CHAT)
    assert stage.edit.toPlainText() == ""
    stage.type("draft of the second")
    stage.click_row("First chat")
    assert stage.edit.toPlainText() == "draft of the first"
    stage.click_row("draft of the second")
    assert stage.edit.toPlainText() == "draft of the second"


@pytest.mark.slow
def test_a_draft_is_stored_without_a_further_key(stage: Stage) -> None:
    stage.chat("First chat", "Yes")
    stage.type("unfinished")
    stage.wait_until(
        lambda: stage.rig.stored(lambda store: store.load(stage.current)).draft == "unfinished"
    )
    assert stage.edit.toPlainText() == "unfinished"


def test_draft_cleared_before_it_is_stored_leaves_no_chat(make_stage: MakeStage) -> None:
    stage = make_stage()
    stage.type("no")
    stage.pane.draft.flush()
    stage.settle()
    assert stage.rows == ["TODAY", "no"]
    stage.run(CommandId.DELETE)
    stage.type("no")
    stage.edit.clear()
    stage.pane.draft.flush()
    stage.settle()
    assert stage.rows == []
    assert stage.rig.stored(lambda store: store.summaries()) == ()


def test_restart_restores_the_chat_and_its_draft(make_stage: MakeStage) -> None:
    stage = make_stage()
    stage.chat("First chat", "Yes")
    stage.type("unfinished")
    settings = stage.rig.core.preferences
    stage.close()
    again = make_stage(settings=settings.value)
    again.wait_until(lambda: again.texts == ["First chat", "Yes"])
    assert again.edit.toPlainText() == "unfinished"


def test_undo_button_restores_the_deleted_chat(stage: Stage) -> None:
    stage.chat("Keep me", "Yes")
    stage.run(CommandId.NEW_CHAT)
    stage.chat("Drop me", "No")
    stage.click_row("Drop me")
    QTest.keyClick(stage.list, Key.Key_Delete)
    stage.settle()
    assert stage.rows == ["TODAY", "Keep me"]
    assert stage.texts == ["Keep me", "Yes"]
    toast = stage.window.sidebar.toast
    assert toast.isVisible()
    buttons = toast.findChildren(Button)
    QTest.mouseClick(buttons[0], Qt.MouseButton.LeftButton)
    stage.settle()
    assert stage.rows[0] == "TODAY"
    assert set(stage.rows[1:]) == {"Keep me", "Drop me"}
    assert stage.texts == ["Drop me", "No"]


def test_undo_key_restores_a_chat_if_there_is_no_typing_to_undo(stage: Stage) -> None:
    stage.chat("Drop me", "No")
    stage.run(CommandId.DELETE)
    stage.edit.setFocus()
    QTest.keyClick(stage.edit, Key.Key_Z, CTRL)
    stage.settle()
    assert stage.rows == ["TODAY", "Drop me"]


def test_undo_key_undoes_typing_first(stage: Stage) -> None:
    stage.chat("Drop me", "No")
    stage.run(CommandId.DELETE)
    stage.edit.setFocus()
    stage.type("words")
    QTest.keyClick(stage.edit, Key.Key_Z, CTRL)
    assert stage.edit.toPlainText() == ""
    assert stage.rows == []


def test_delete_key_in_the_composer_deletes_text_only(stage: Stage) -> None:
    stage.chat("Keep me", "Yes")
    stage.type("ab")
    for key in (Key.Key_Backspace, Key.Key_Delete):
        QTest.keyClick(stage.edit, key)
        QTest.keyClick(stage.edit, key, CTRL)
    assert stage.rows == ["TODAY", "Keep me"]


def test_deleting_a_chat_stops_its_answer(stage: Stage) -> None:
    stage.send("Drop me")
    stage.engine.write("Half")
    stage.settle()
    stage.run(CommandId.DELETE)
    assert stage.engine.running is None
    assert stage.rows == []
    stage.run(CommandId.UNDO)
    assert stage.texts == ["Drop me", "Half"]


def test_undo_of_a_message_restores_its_deleted_chat(stage: Stage) -> None:
    stage.chat("One", "1")
    stage.chat("Two", "2")
    stage.pane.view.click_actions.requested.emit(stage.items[2].key, RowAction.DELETE)
    stage.settle()
    button = stage.window.toast.findChild(Button)
    assert button is not None
    stage.run(CommandId.DELETE)
    assert stage.rows == []
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)
    stage.settle()
    assert stage.rows == ["TODAY", "One"]
    assert stage.texts == ["One", "1", "Two", "2"]
    assert stage.rig.stored_path(stage.current)[-1].content == "2"
    stage.run(CommandId.UNDO)  # nothing is left to undo
    assert stage.rows == ["TODAY", "One"]


def test_deleting_a_chat_with_a_waiting_message_removes_it_from_the_list(
    make_stage: MakeStage,
) -> None:
    stage = make_stage(hold_load=True)
    stage.send("Drop me")
    assert stage.rows == ["TODAY", "Drop me"]
    stage.run(CommandId.DELETE)
    assert stage.rows == []
    stage.run(CommandId.UNDO)
    assert stage.edit.toPlainText() == "Drop me"


def test_long_title_is_shortened_to_the_room_in_the_toolbar(stage: Stage) -> None:
    title = "How does the delta rule update its state, and what does a step cost?"
    stage.chat(title, "Little.")
    stage.window.resize(1180, 780)
    stage.settle()
    assert stage.window.toolbar.title_button.text() == title
    stage.window.resize(640, 480)
    stage.settle()
    assert stage.window.toolbar.title_button.text().endswith("…")
    stage.rig.core.organiser.rename(stage.current, "R & D")
    stage.settle()
    assert stage.window.toolbar.title_button.text() == "R && D", (
        "an ampersand must not become a menu key"
    )


def test_rename_in_the_toolbar_changes_title_and_list(stage: Stage) -> None:
    stage.chat("Hello", "Hi")
    QTest.mouseClick(stage.window.toolbar.title_button, Qt.MouseButton.LeftButton)
    field = stage.window.toolbar.title_field
    QTest.keyClicks(field, "Greetings")
    QTest.keyClick(field, Key.Key_Return)
    stage.settle()
    assert stage.rows == ["TODAY", "Greetings"]
    assert stage.window.toolbar.title_button.text() == "Greetings"


def test_rename_in_the_toolbar_is_cancelled_by_escape(stage: Stage) -> None:
    stage.chat("Hello", "Hi")
    stage.run(CommandId.RENAME)
    field = stage.window.toolbar.title_field
    QTest.keyClicks(field, "Oops")
    QTest.keyClick(field, Key.Key_Escape)
    assert not field.isVisible()
    assert stage.rows == ["TODAY", "Hello"]


def test_rename_in_the_list_sets_a_manual_title(stage: Stage) -> None:
    stage.chat("Hello", "Hi")
    stage.click_row("Hello")
    stage.list.edit_current()
    editor = stage.list.findChild(QLineEdit)
    assert isinstance(editor, QLineEdit)
    QTest.keyClicks(editor, "Greetings")
    QTest.keyClick(editor, Key.Key_Return)
    stage.settle()
    assert stage.rows == ["TODAY", "Greetings"]
    assert stage.rig.current.title_is_manual


def test_a_chat_that_is_not_open_can_be_renamed(make_stage: MakeStage) -> None:
    stage = make_stage()
    stage.chat("Hello", "Hi")
    conversation_id = stage.current
    stage.close()
    again = make_stage()
    again.wait_until(lambda: again.rows == ["TODAY", "Hello"])
    again.rig.core.organiser.rename(conversation_id, "Greetings")
    again.wait_until(lambda: again.rows == ["TODAY", "Greetings"])
    assert again.stored(lambda store: store.load(conversation_id)).title == "Greetings"


def test_recent_chat_button_in_an_empty_chat_opens_the_chat(stage: Stage) -> None:
    stage.chat("Hello", "Hi")
    stage.run(CommandId.NEW_CHAT)
    button = next(one for one in stage.pane.empty.recent.findChildren(Button) if one.isVisible())
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)
    stage.settle()
    assert stage.texts == ["Hello", "Hi"]


def test_new_chat_reuses_an_empty_one(stage: Stage) -> None:
    before = stage.current
    stage.run(CommandId.NEW_CHAT)
    assert stage.current == before
    assert QApplication.focusWidget() is stage.edit


@pytest.mark.parametrize("text", ["Deleted.", "Several lines of a problem, with what to do. " * 5])
def test_toast_covers_no_button_of_the_last_answer(stage: Stage, text: str) -> None:
    stage.chat("Hello", "A line.\n\n" * 40)
    stage.pane.view.jump_to_latest()
    view, toast = stage.pane.view, stage.window.toast
    points = list(targets(view, RowAction.REGENERATE))
    toast.warn(text)
    stage.settle()
    assert view.verticalScrollBar().value() == view.verticalScrollBar().maximum()
    (shown,) = targets(view, RowAction.REGENERATE)
    top = view.viewport().mapFrom(stage.window, toast.geometry().topLeft()).y()
    height, width = view.viewport().height(), view.viewport().width()
    places = [QPointF(x, y) for y in range(top, height, 4) for x in range(0, width, 8)]
    assert not [p for p in places if view.target_at(p)], (top, height, toast.geometry())
    if toast.height() == Size.TOAST:
        assert [shown] == points, "the text stays"
    toast.dismiss()
    stage.settle()
    assert list(targets(view, RowAction.REGENERATE)) == points
