"""Several answers side by side at the real window: columns, keys, use, stop, marks."""

from __future__ import annotations

from itertools import product

import pytest
from PySide6.QtCore import QPoint, QPointF, QRect, Qt
from PySide6.QtGui import QAccessible, QColor, QGuiApplication
from PySide6.QtTest import QTest

from app.conversation.tree import NodeId, Setup
from app.theme.tokens import Size
from app.widgets.answers.column import AnswerColumn
from app.widgets.answers.pane import AnswersPane
from app.widgets.commands import CommandId
from app.widgets.message_edit import MessageEdit
from app.widgets.transcript.jump import JumpButton
from app.widgets.transcript.rows.ranges import Range
from app.widgets.transcript.rows.row import RowAction
from tests.fakes.stage import Key, Stage
from tests.fakes.transcript_stage import targets

ALT_CTRL = Qt.KeyboardModifier.AltModifier | Qt.KeyboardModifier.ControlModifier
NARROW = (700, 600)


def regenerate(stage: Stage, answers: int) -> AnswersPane:
    """Begin several versions of the last answer."""
    assert stage.rig.chat.regenerate(stage.current, NodeId(stage.items[-1].key), answers=answers)
    stage.settle()
    return pane_of(stage)


def pane_of(stage: Stage) -> AnswersPane:
    pane = stage.pane.reading.pane
    assert pane is not None
    return pane


def write(stage: Stage, *texts: str) -> None:
    """Write a text to each of the running answers, and let the columns show it."""
    for number, text in enumerate(texts, 1):
        stage.engine.turn_to(number)
        stage.engine.write(text)
    flush(stage)


def flush(stage: Stage) -> None:
    """Let the columns show the text that has arrived."""
    stage.settle()
    for column in columns(stage):
        column.view.flush()


def finish(stage: Stage, count: int) -> None:
    for _ in range(count):
        stage.engine.turn_to(1)
        stage.engine.finish()
    stage.settle()


def columns(stage: Stage) -> list[AnswerColumn]:
    pane = stage.pane.reading.pane
    return [] if pane is None else pane.columns


def begun(stage: Stage) -> list[AnswerColumn]:
    """Return the columns of the answers that were requested after the first one."""
    return columns(stage)[1:]


def marked(column: AnswerColumn) -> list[Range]:
    return [one for row in column.view.word_marks.ranges for one in row]


def shown_texts(stage: Stage) -> list[str]:
    return [one.view.text_of(one.item.key) for one in columns(stage) if one.isVisible()]


def seen(column: AnswerColumn) -> int:
    """Return how much of the width of a column is in sight."""
    return column.visibleRegion().boundingRect().width()


def three(stage: Stage) -> AnswersPane:
    """Show three ended answers beside the one before them. The first of them is in focus."""
    stage.chat("A boat?", "Yes.")
    pane = regenerate(stage, 3)
    write(stage, "A red boat.", "A blue boat.", "A green boat.")
    finish(stage, 3)
    return pane


def test_a_set_of_answers_covers_the_transcript_and_streams_side_by_side(stage: Stage) -> None:
    stage.chat("A boat?", "Yes.")
    pane = regenerate(stage, 3)
    assert pane.isVisible()
    assert not stage.pane.view.isVisible()
    assert stage.composer.isVisible()
    assert pane.question.text() == "A boat?"
    write(stage, "Red", "Blue", "Green")
    assert shown_texts(stage) == ["Yes.", "Red", "Blue", "Green"]
    assert [one.differs.text() for one in columns(stage)] == [""] * 4
    write(stage, " ship", " ship", " ship")
    assert shown_texts(stage) == ["Yes.", "Red ship", "Blue ship", "Green ship"]
    finish(stage, 3)
    assert [one.item.is_running for one in columns(stage)] == [False] * 4


def test_an_answer_with_other_options_stands_beside_the_one_before(stage: Stage) -> None:
    stage.chat("A boat?", "Yes.")
    assert stage.rig.chat.ask_again(
        stage.current, NodeId(stage.items[-1].key), Setup(temperature=1.5, seed=5)
    )
    stage.settle()
    write(stage, "Aye.")
    assert shown_texts(stage) == ["Yes.", "Aye."]
    assert [one.differs.text().split(" · ")[0] for one in columns(stage)] == [
        "Temperature 0.6",
        "Temperature 1.5",
    ]


@pytest.mark.parametrize("size", [(1180, 780), NARROW])
def test_columns_without_room_are_reached_by_scrolling_and_their_edge_is_visible(
    stage: Stage, size: tuple[int, int]
) -> None:
    stage.window.resize(*size)
    stage.chat("A boat?", "Yes.")
    pane = regenerate(stage, 3)
    write(stage, "Red", "Blue", "Green")
    assert [one.heading.text() for one in columns(stage)] == [f"Answer {at}" for at in range(1, 5)]
    assert shown_texts(stage) == ["Yes.", "Red", "Blue", "Green"]
    least = min(column.width() for column in columns(stage))
    assert least >= Size.ANSWER_COLUMN
    for column in columns(stage):
        pane.focus_answer(column.item.key)
        assert seen(column) == column.width()
        visible = [seen(one) for one in columns(stage)]
        assert any(0 < width < least for width in visible), "nothing shows that there are more"


def test_new_answers_are_in_sight_beside_their_earlier_versions(stage: Stage) -> None:
    three(stage)
    pane = regenerate(stage, 2)
    assert seen(columns(stage)[5]) == columns(stage)[5].width()
    stage.run(CommandId.SIDE_BY_SIDE)
    stage.run(CommandId.SIDE_BY_SIDE)
    first_new = columns(stage)[4]
    assert pane.focused is first_new
    assert seen(first_new) == first_new.width()


def test_wheel_over_a_column_scrolls_sideways(stage: Stage) -> None:
    three(stage)
    before = seen(columns(stage)[0])
    at = QPointF(columns(stage)[2].view.mapTo(stage.window, QPoint(20, 20)))
    QTest.wheelEvent(stage.window.windowHandle(), at, QPoint(240, 0))
    assert seen(columns(stage)[0]) > before


def test_answer_in_focus_stays_in_sight_when_the_window_gets_narrower(stage: Stage) -> None:
    pane = three(stage)
    last = columns(stage)[3]
    pane.focus_answer(last.item.key)
    stage.window.resize(*NARROW)
    stage.settle()
    assert seen(last) == last.width()


def test_use_this_answer_shows_it_stops_the_others_and_can_be_undone(stage: Stage) -> None:
    stage.chat("A boat?", "Yes.")
    pane = regenerate(stage, 3)
    write(stage, "Red", "Blue", "Green")
    begun(stage)[1].use.click()
    stage.settle()
    assert not pane.isVisible()
    assert stage.pane.view.isVisible()
    assert stage.texts == ["A boat?", "Blue"]
    assert stage.rig.turns.replies_in(stage.current) == (NodeId(stage.items[-1].key),)
    assert stage.pane.transcript.items[-1].version.count == 4
    assert stage.window.toast.text == "Answer 3 is in use"
    stage.window.toast.button.click()
    stage.settle()
    assert pane.isVisible()
    assert stage.texts == ["A boat?", "Red"]


def test_keys_move_between_columns_and_return_uses_the_one_in_focus(stage: Stage) -> None:
    pane = three(stage)
    assert stage.composer.edit.hasFocus(), "the columns took the focus from the composer"
    assert pane.focused is begun(stage)[0]
    stage.run(CommandId.NEXT_VERSION)
    second = begun(stage)[1]
    assert second.view.hasFocus()
    stage.run(CommandId.COPY_LAST)
    assert QGuiApplication.clipboard().text() == "A blue boat."
    assert second.use.property("kind") == "primary"
    assert begun(stage)[0].use.property("kind") is None
    stage.run(CommandId.NEXT_VERSION)
    assert not stage.window.commands[CommandId.NEXT_VERSION].isEnabled()
    stage.run(CommandId.PREVIOUS_VERSION)
    stage.run(CommandId.SELECT_ALL)
    stage.run(CommandId.COPY)
    assert QGuiApplication.clipboard().text().strip() == "A blue boat."
    QTest.keyClick(second.view, Key.Key_X)
    assert stage.composer.text == "x", "typed text does not go to the composer"
    second.view.setFocus()
    QTest.keyClick(second.view, Key.Key_Return)
    stage.settle()
    assert stage.texts == ["A boat?", "A blue boat."]
    assert not pane.isVisible()


def test_escape_closes_the_answers_which_go_on_and_a_line_shows_them_again(stage: Stage) -> None:
    stage.chat("A boat?", "Yes.")
    pane = regenerate(stage, 2)
    line = stage.pane.answers_line
    assert line.isHidden()
    QTest.keyClick(stage.edit, Key.Key_Escape)
    stage.settle()
    assert not pane.isVisible()
    assert len(stage.rig.turns.replies_in(stage.current)) == 2, "Esc stopped an answer"
    assert line.sentence.text().strip() == "2 answers to this message are still being written."
    line.first.click()
    stage.settle()
    assert pane.isVisible()
    assert line.isHidden()
    write(stage, "Red", "Blue")
    QTest.keyClick(pane.focused.view if pane.focused else pane, Key.Key_Escape)
    stage.settle()
    assert stage.composer.edit.hasFocus()
    finish(stage, 1)
    assert line.sentence.text().strip() == "1 answer to this message is still being written."
    finish(stage, 1)
    assert line.isHidden()


def test_answers_cover_an_editor_whose_text_stays(stage: Stage) -> None:
    stage.chat("A boat?", "Yes.")
    stage.click(RowAction.EDIT)
    (field,) = (one for one in stage.pane.view.findChildren(MessageEdit) if one.isVisible())
    QTest.keyClicks(field, " Or a ship?")
    regenerate(stage, 2)
    first = begun(stage)[0].view
    assert first.hasFocus()
    QTest.keyClick(stage.edit, Key.Key_Escape)
    stage.settle()
    assert not first.isVisible()
    assert field.isVisible()
    assert field.toPlainText() == "A boat? Or a ship?"
    assert field.hasFocus()


def test_the_line_is_hidden_while_the_only_running_answer_is_on_show(stage: Stage) -> None:
    stage.send("A boat?")
    stage.engine.write("Yes")
    stage.settle()
    assert stage.pane.answers_line.isHidden()
    stage.answer(".")
    regenerate(stage, 2)
    begun(stage)[0].use.click()
    stage.settle()
    assert stage.pane.answers_line.isHidden(), "an answer that was stopped counts as being written"


def test_the_line_is_hidden_while_another_message_is_on_show(stage: Stage) -> None:
    stage.chat("A boat?", "Yes.")
    question = NodeId(stage.items[0].key)
    assert stage.rig.chat.edit(stage.current, question, "A ship?")
    stage.answer("No.")
    regenerate(stage, 2)
    stage.rig.chat.show_branch(stage.current, question)
    stage.settle()
    assert stage.texts == ["A boat?", "Yes."]
    assert stage.pane.answers_line.isHidden()


def test_answers_to_a_sent_message_are_shown_again_when_their_chat_returns(stage: Stage) -> None:
    assert stage.rig.chat.send(stage.current, "A boat?", answers=2)
    stage.settle()
    pane, chat = pane_of(stage), stage.current
    write(stage, "Red", "Blue")
    stage.run(CommandId.NEW_CHAT)
    assert not pane.isVisible()
    stage.engine.turn_to(2)
    stage.engine.write(" ship")
    stage.rig.core.library.select(chat)
    flush(stage)
    assert pane.isVisible()
    assert shown_texts(stage) == ["Red", "Blue ship"]


def test_a_message_continues_from_the_ended_answer_in_focus(stage: Stage) -> None:
    pane = three(stage)
    assert "Continues from Answer 2" in stage.composer.button.toolTip()
    pane.step(2)
    assert "Continues from Answer 4" in stage.composer.button.toolTip()
    stage.send("And a plane?")
    assert not pane.isVisible()
    assert "Continues" not in stage.composer.button.toolTip()
    assert stage.texts[:3] == ["A boat?", "A green boat.", "And a plane?"]
    sent = [message.content for message in stage.engine.submitted[-1].messages]
    assert sent[-2:] == ["A green boat.", "And a plane?"]


def test_a_queued_message_follows_the_answer_that_was_used(stage: Stage) -> None:
    stage.chat("A boat?", "Yes.")
    regenerate(stage, 2)
    write(stage, "Red", "Blue")
    stage.send("And a plane?")
    begun(stage)[1].use.click()
    stage.settle()
    stage.answer(" ship")
    assert stage.texts[-3:-1] == ["Blue ship", "And a plane?"]


def test_a_message_sent_while_an_answer_runs_is_queued(stage: Stage) -> None:
    stage.chat("A boat?", "Yes.")
    pane = regenerate(stage, 2)
    write(stage, "Red", "Blue")
    finish(stage, 1)
    pane.step(1)
    assert "Continues" not in stage.composer.button.toolTip()
    stage.send("And a plane?")
    assert stage.rig.chat.queued(stage.current).text == "And a plane?"
    assert pane.isVisible()
    finish(stage, 1)
    assert not pane.isVisible(), "the answer to the queued message is hidden"
    assert stage.texts[-2] == "And a plane?"


def test_stop_ends_one_answer_and_the_command_stops_all(stage: Stage) -> None:
    stage.chat("A boat?", "Yes.")
    pane = regenerate(stage, 3)
    write(stage, "Red", "Blue", "Green")
    assert begun(stage)[1].again.accessibleName() == "Stop"
    begun(stage)[1].again.click()
    stage.settle()
    assert [one.item.is_running for one in begun(stage)] == [True, False, True]
    assert not begun(stage)[1].again.isEnabled(), "another answer is still being written"
    stage.run(CommandId.STOP)
    assert not stage.rig.turns.replies_in(stage.current)
    assert pane.isVisible()
    begun(stage)[0].again.click()
    stage.settle()
    assert len(begun(stage)) == 4
    assert begun(stage)[3].item.is_running


def test_answer_that_was_stopped_without_text_cannot_be_used(stage: Stage) -> None:
    stage.chat("A boat?", "Yes.")
    pane = regenerate(stage, 3)
    write(stage, "Red", "Blue")
    begun(stage)[2].again.click()
    stage.settle()
    assert [one.use.isEnabled() for one in begun(stage)] == [True, True, False]
    QTest.keyClick(begun(stage)[2], Qt.Key.Key_Return)
    stage.settle()
    assert pane.isVisible()


def test_marked_words_are_those_that_the_answer_in_focus_does_not_have(stage: Stage) -> None:
    stage.chat("A boat?", "Yes.")
    pane = regenerate(stage, 2)
    write(stage, "A red boat sails north.", "A blue boat sails north.")
    assert not pane.mark.isEnabled(), "answers that are being written can be compared"
    finish(stage, 2)
    pane.mark.click()

    def is_underlined(column: AnswerColumn) -> bool:
        image = column.view.viewport().grab(QRect(0, 0, 200, 80)).toImage()
        ink = QColor(stage.theme.colors.must_read.ink)
        points = product(range(image.width()), range(image.height()))
        return any(image.pixelColor(x, y) == ink for x, y in points)

    first, second = begun(stage)
    assert marked(first) == []
    assert marked(second) == [Range(2, 6)]
    assert pane.mark.text() == "Differences from Answer 2"
    pane.step(1)
    assert (marked(first), marked(second)) == ([Range(2, 5)], [])
    assert pane.mark.text() == "Differences from Answer 3"
    stage.window.resize(*NARROW)
    stage.settle()
    assert (marked(first), marked(second)) == ([Range(2, 5)], [])
    stage.run(CommandId.ZOOM_IN)
    stage.run(CommandId.DARK)
    assert is_underlined(first), "the marks are gone in another look"
    assert not is_underlined(second)
    pane.mark.click()
    assert marked(first) == []
    assert pane.mark.text() == "Mark Differences"


def test_words_are_marked_once_both_answers_are_finished(stage: Stage) -> None:
    stage.chat("A boat?", "A boat.")
    pane = regenerate(stage, 2)
    write(stage, "A red boat.", "A blue boat.")
    finish(stage, 1)
    pane.mark.click()
    old, first, second = columns(stage)
    assert pane.mark.text() == "Differences from Answer 2"
    assert [marked(one) for one in (old, first, second)] == [[], [], []]
    stage.engine.turn_to(1)
    pane.focus_answer(second.item.key)
    assert pane.mark.text() == "Mark Differences", "the answer in focus is being written"
    finish(stage, 1)
    assert pane.mark.text() == "Differences from Answer 3"
    assert [marked(one) for one in (old, first, second)] == [[], [Range(2, 5)], []]


def test_versions_are_shown_side_by_side_from_the_buttons_of_an_answer(stage: Stage) -> None:
    stage.chat("A boat?", "Yes.")
    assert not stage.window.commands[CommandId.SIDE_BY_SIDE].isEnabled()
    assert not list(targets(stage.pane.view, RowAction.SIDE_BY_SIDE))
    stage.pane.transcript.regenerate_last()
    stage.settle()
    stage.answer("No.")
    stage.click(RowAction.SIDE_BY_SIDE)
    assert shown_texts(stage) == ["Yes.", "No."]
    assert pane_of(stage).focused is columns(stage)[1]
    assert columns(stage)[1].view.hasFocus()
    assert stage.window.commands[CommandId.SIDE_BY_SIDE].isChecked()
    stage.run(CommandId.SIDE_BY_SIDE)
    assert stage.pane.view.isVisible()
    stage.run(CommandId.SIDE_BY_SIDE)
    assert shown_texts(stage) == ["Yes.", "No."]


def test_the_transcript_returns_when_it_is_searched_or_only_one_version_is_left(
    stage: Stage,
) -> None:
    pane = three(stage)
    stage.run(CommandId.FIND)
    assert not pane.isVisible()
    assert stage.pane.find_bar.isVisible()
    stage.run(CommandId.SIDE_BY_SIDE)
    assert pane.isVisible()
    assert not stage.pane.find_bar.isVisible()
    assert len(columns(stage)) == 4
    for key in [column.item.key for column in columns(stage)[1:]]:
        stage.rig.chat.delete(stage.current, key)
    stage.settle()
    assert not pane.isVisible()
    assert stage.texts == ["A boat?", "Yes."]


def test_each_column_is_a_named_group_and_each_end_is_announced(stage: Stage) -> None:
    texts: list[str] = []
    stage.window.speaker.announcer.said.connect(texts.append)
    stage.chat("A boat?", "Yes.")
    texts.clear()
    regenerate(stage, 2)
    write(stage, "Red", "Blue")
    interface = QAccessible.queryAccessibleInterface(begun(stage)[1])
    assert interface.role() is QAccessible.Role.Grouping
    assert interface.text(QAccessible.Text.Name) == "Answer 3"
    stage.engine.turn_to(2)
    stage.engine.finish()
    stage.settle()
    finish(stage, 1)
    assert texts == ["Answering…", "Answer 3 finished, 1 token", "Answer 2 finished, 1 token"]


def test_actions_of_screen_readers_concern_the_answer_of_the_column(stage: Stage) -> None:
    stage.chat("A boat?", "Yes.")
    regenerate(stage, 2)
    write(stage, "Red", "Blue")
    asked: list[tuple[object, object]] = []

    def note(chat: object, key: object) -> None:
        asked.append((chat, key))

    why = stage.pane.transcript.why_requested
    why.disconnect()  # the window that answers
    why.connect(note)
    first, second = begun(stage)
    second.view.click_actions.act(0, RowAction.STOP)
    stage.settle()
    assert [first.item.is_running, second.item.is_running] == [True, False]
    second.view.click_actions.act(0, RowAction.WHY_READ)
    assert asked == [(stage.current, second.item.key)]


def test_a_long_answer_stays_at_its_first_line_in_a_low_column(stage: Stage) -> None:
    stage.window.resize(1180, 480)
    stage.chat("A boat?", "Yes.")
    regenerate(stage, 2)
    for _ in range(30):
        stage.engine.write("A line.\n\n")
        flush(stage)
    finish(stage, 2)
    view = begun(stage)[0].view
    assert view.verticalScrollBar().value() < 40
    jump = view.findChild(JumpButton)
    assert jump is not None
    assert view.viewport().rect().contains(jump.geometry()), "the button is cut"
