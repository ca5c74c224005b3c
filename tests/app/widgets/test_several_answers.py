"""Several answers to one message: started, stopped, picked and refused at the real window."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import Mock

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QContextMenuEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from app.controllers import turns
from app.controllers.refusal import Refusal
from app.controllers.requests import UnseenPicturesError
from app.conversation.preset import Preset
from app.conversation.tree import Conversation, MessageStatus, NodeId, Setup, versions
from app.widgets.commands import CommandId
from app.widgets.menu import Menu
from app.words import problems
from engine.errors import OutOfMemoryError
from engine.events import Submit
from engine.questions import Ask, Forget
from engine.types import answer_id
from tests.app.conftest import MakeStage
from tests.fakes.rig import FakeCatalog, card
from tests.fakes.stage import CTRL, Key, Stage

ALT = Qt.KeyboardModifier.AltModifier


def regenerate(stage: Stage, answers: int) -> tuple[NodeId, ...]:
    """Request several versions of the last answer. Return their nodes."""
    last = NodeId(stage.items[-1].key)
    assert stage.rig.chat.regenerate(stage.current, last, answers=answers)
    stage.settle()
    return stage.rig.turns.replies_in(stage.current)


def finish_all(stage: Stage, *texts: str) -> None:
    for text in texts:
        stage.engine.turn_to(1)
        stage.answer(text)


def forgotten(stage: Stage) -> list[Forget]:
    return [one for one in stage.engine.questions if isinstance(one, Forget)]


def contents(stage: Stage, node_id: NodeId) -> list[str]:
    conversation = stage.rig.desk.get(stage.current)
    return [conversation.nodes[one].content for one in versions(conversation, node_id)]


def stored_chat(stage: Stage) -> Conversation:
    return stage.stored(lambda store: store.load(stage.current))


def test_regenerate_with_three_answers_submits_them_together_with_seeds_in_a_row(
    stage: Stage,
) -> None:
    stage.chat("A boat?", "Yes.")
    regenerate(stage, 3)
    first, *others = stage.engine.submitted[-3:]

    assert first.follows is None
    assert [one.follows for one in others] == [first.request_id] * 2
    assert [one.conversation_id for one in (first, *others)] == [
        answer_id(stage.current, number) for number in (1, 2, 3)
    ]
    assert len({one.messages for one in (first, *others)}) == 1
    assert len({one.sampling.seed for one in (first, *others)}) == 3


def test_the_first_of_several_answers_is_on_show_and_all_are_versions(stage: Stage) -> None:
    stage.chat("A boat?", "Yes.")
    replies = regenerate(stage, 3)
    finish_all(stage, "one", "two", "three")

    assert stage.texts[-1] == "one"
    assert contents(stage, replies[0]) == ["Yes.", "one", "two", "three"]
    assert {one.content for one in stored_chat(stage).nodes.values()} >= {"one", "two", "three"}


def test_chat_takes_over_the_state_of_all_answers_when_the_last_has_ended(stage: Stage) -> None:
    stage.chat("A boat?", "Yes.")
    regenerate(stage, 3)
    finish_all(stage, "one", "two")
    assert not forgotten(stage)
    finish_all(stage, "three")

    chat = stage.current
    assert [(one.conversation_id, one.heir) for one in forgotten(stage)] == [
        (answer_id(chat, 2), chat),
        (answer_id(chat, 3), chat),
    ]


def test_picked_answer_stops_the_others_whose_state_is_dropped_and_undo_shows_the_first(
    stage: Stage,
) -> None:
    stage.chat("A boat?", "Yes.")
    replies = regenerate(stage, 3)
    for number in (1, 2, 3):
        stage.engine.turn_to(number)
        stage.engine.write(f"text {number}")
    stage.rig.chat.pick(stage.current, replies[1])
    stage.settle()

    assert stage.texts[-1] == "text 2"
    assert stage.rig.turns.replies_in(stage.current) == (replies[1],)
    stage.engine.finish()
    stage.settle()
    chat = stage.current
    assert [(one.conversation_id, one.heir) for one in forgotten(stage)] == [
        (answer_id(chat, 2), chat),
        (answer_id(chat, 3), None),
    ]
    assert contents(stage, replies[0]) == ["Yes.", "text 1", "text 2", "text 3"]
    stage.run(CommandId.UNDO)
    assert stage.texts[-1] == "text 1"
    stage.run(CommandId.UNDO)
    assert stage.texts[-1] == "Yes."


def test_stopped_answer_leaves_the_others_running(stage: Stage) -> None:
    stage.chat("A boat?", "Yes.")
    replies = regenerate(stage, 2)
    stage.engine.turn_to(2)
    stage.engine.write("half")
    stage.rig.chat.stop_reply(replies[1])
    stage.settle()

    node = stage.rig.desk.get(stage.current).nodes[replies[1]]
    assert (node.content, node.status) == ("half", MessageStatus.STOPPED)
    assert stage.rig.turns.reply_in(stage.current) == replies[0]
    assert not stage.rig.turns.is_stopping(stage.current)
    finish_all(stage, "whole")
    assert stage.texts[-1] == "whole"


def test_stop_before_the_first_word_removes_all_new_versions(stage: Stage) -> None:
    stage.chat("A boat?", "Yes.")
    last = NodeId(stage.items[-1].key)
    regenerate(stage, 4)
    stage.run(CommandId.STOP)
    stage.settle()

    assert not stage.rig.turns.replies_in(stage.current)
    assert stage.texts[-1] == "Yes."
    assert contents(stage, last) == ["Yes."]


def test_answer_stopped_before_its_first_word_leaves_the_versions_with_text(stage: Stage) -> None:
    stage.chat("A boat?", "Yes.")
    replies = regenerate(stage, 3)
    stage.rig.chat.stop_reply(replies[0])
    stage.settle()
    finish_all(stage, "two", "three")

    assert contents(stage, replies[0]) == ["Yes.", "two", "three"]
    assert stage.texts[-1] == "two"
    stage.run(CommandId.UNDO)
    assert stage.texts == ["A boat?", "Yes."]
    stage.run(CommandId.REDO)
    assert stage.texts == ["A boat?", "two"]


@pytest.mark.parametrize("answers", [1, 3])
def test_message_that_has_not_begun_returns_to_the_composer_at_a_stop(
    stage: Stage, answers: int
) -> None:
    stage.engine.hold_start = True
    assert stage.rig.chat.send(stage.current, "A boat?", answers=answers)
    stage.settle()
    stage.run(CommandId.STOP)
    stage.settle()

    assert stage.edit.toPlainText() == "A boat?"
    assert not stage.texts
    assert not stage.rig.turns.replies_in(stage.current)


def test_answers_that_wait_for_memory_are_dropped_by_a_stop_and_the_first_keeps_its_text(
    stage: Stage,
) -> None:
    assert stage.rig.chat.send(stage.current, "A boat?", answers=1)
    stage.answer("Yes.")
    stage.engine.hold_start = True
    replies = regenerate(stage, 2)
    stage.engine.hold_start = False
    stage.engine.begin_first()
    stage.engine.write("one")
    stage.run(CommandId.STOP)
    stage.settle()

    assert stage.texts[-1] == "one"
    assert contents(stage, replies[0]) == ["Yes.", "one"]


def test_send_with_two_answers_is_taken_back_with_both_by_undo(stage: Stage) -> None:
    assert stage.rig.chat.send(stage.current, "A boat?", answers=2)
    stage.settle()
    stage.engine.write("one")
    stage.run(CommandId.UNDO)
    stage.settle()

    assert not stage.texts
    assert not stage.rig.turns.replies_in(stage.current)
    assert stage.edit.toPlainText() == "A boat?"


def test_problem_of_one_answer_stays_at_its_version(stage: Stage) -> None:
    stage.chat("A boat?", "Yes.")
    replies = regenerate(stage, 2)
    stage.engine.turn_to(2)
    stage.engine.fail(OutOfMemoryError("").problem)
    finish_all(stage, "one")

    nodes = stage.rig.desk.get(stage.current).nodes
    assert nodes[replies[1]].status is MessageStatus.FAILED
    assert stage.texts[-1] == "one"


def test_several_answers_at_temperature_0_are_refused_with_the_reason(stage: Stage) -> None:
    stage.chat("A boat?", "Yes.")
    setup = stage.rig.desk.get(stage.current).setup
    stage.rig.chat.set_setup(stage.current, replace(setup, temperature=0.0))
    refused: list[Refusal] = []
    stage.rig.chat.refused.connect(refused.append)

    assert not stage.rig.chat.regenerate(stage.current, NodeId(stage.items[-1].key), answers=2)
    assert [one.problem and one.problem.title for one in refused] == [problems.EQUAL_ANSWERS]
    assert stage.rig.chat.regenerate(stage.current, NodeId(stage.items[-1].key))


def test_message_sent_during_several_answers_is_sent_when_all_have_ended(stage: Stage) -> None:
    stage.chat("A boat?", "Yes.")
    regenerate(stage, 2)
    stage.send("And a ship?")
    count = len(stage.engine.submitted)
    finish_all(stage, "one")
    assert len(stage.engine.submitted) == count
    finish_all(stage, "two")

    assert stage.engine.submitted[-1].messages[-1].content == "And a ship?"
    assert stage.engine.submitted[-1].messages[-2].content == "one"


def test_set_of_answers_that_begins_at_the_end_of_another_is_forgotten_too(stage: Stage) -> None:
    stage.chat("A boat?", "Yes.")
    regenerate(stage, 2)
    assert stage.rig.chat.send(stage.current, "And a ship?", answers=3)
    finish_all(stage, "one", "two")
    chat = stage.current
    assert len(stage.rig.turns.replies_in(chat)) == 3
    ends = [command for command in stage.engine.commands if isinstance(command, Ask | Submit)]
    forget = next(one for one in ends if isinstance(one, Ask) and isinstance(one.question, Forget))
    submit = next(one for one in reversed(ends) if isinstance(one, Submit))
    assert ends.index(forget) < ends.index(submit) - 1, "a new answer is forgotten"
    finish_all(stage, "one", "two", "three")

    assert [(one.conversation_id, one.heir) for one in forgotten(stage)] == [
        (answer_id(chat, number), chat) for number in (2, 2, 3)
    ]


def test_several_answers_refused_at_once_leave_the_chat_usable(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = UnseenPicturesError("").problem
    monkeypatch.setattr(turns, "problem_of_turn", Mock(return_value=problem))
    assert stage.rig.chat.send(stage.current, "A boat?", answers=2)
    monkeypatch.undo()
    stage.settle()
    stage.edit.clear()
    stage.chat("And a ship?", "Yes.")

    assert stage.texts == ["And a ship?", "Yes."]


def test_answered_is_reported_once_for_several_answers(stage: Stage) -> None:
    answered: list[object] = []
    stage.chat("A boat?", "Yes.")
    stage.rig.turns.answered.connect(answered.append)
    regenerate(stage, 3)
    finish_all(stage, "one", "two")
    assert not answered
    finish_all(stage, "three")

    assert answered == [stage.current]


def test_quitting_keeps_the_text_of_all_running_answers(stage: Stage) -> None:
    stage.chat("A boat?", "Yes.")
    replies = regenerate(stage, 2)
    for number in (1, 2):
        stage.engine.turn_to(number)
        stage.engine.write(f"text {number}")
    stage.settle()
    stage.rig.turns.ends.note_quit()
    stored = stored_chat(stage)

    assert [stored.nodes[one].content for one in replies] == ["text 1", "text 2"]
    generations = [stored.nodes[one].generation for one in replies]
    assert all(one is not None and one.was_quit for one in generations)


def test_key_sends_a_message_for_several_answers_and_without_one_regenerates(stage: Stage) -> None:
    commands = stage.window.commands
    assert not commands[CommandId.ANSWERS_3].isEnabled()
    stage.type("A boat?")
    assert commands[CommandId.ANSWERS_3].isEnabled()
    assert commands[CommandId.ANSWERS_3].text() == "Send ×3"
    QTest.keyClick(stage.edit, Key.Key_3, CTRL | ALT)
    stage.settle()
    assert len(stage.rig.turns.replies_in(stage.current)) == 3
    assert not stage.edit.toPlainText()
    assert not commands[CommandId.ANSWERS_2].isEnabled()
    finish_all(stage, "one", "two", "three")
    assert commands[CommandId.ANSWERS_2].text() == "Regenerate ×2"
    QTest.keyClick(stage.edit, Key.Key_2, CTRL | ALT)
    stage.settle()
    assert len(stage.rig.turns.replies_in(stage.current)) == 2
    finish_all(stage, "four", "five")
    stage.type("A ship?")
    QTest.keyClick(stage.edit, Key.Key_4, CTRL | ALT)
    stage.settle()
    assert len(stage.rig.turns.replies_in(stage.current)) == 4
    assert stage.texts[-2] == "A ship?"


@pytest.mark.qt_log_ignore("does not support (raise|grabbing)", extend=True)
def test_right_click_on_the_send_button_opens_its_menu_only_with_a_message(stage: Stage) -> None:
    button = stage.composer.button
    right_click(button)
    assert not button.findChildren(Menu)
    stage.type("A boat?")
    right_click(button)
    (menu,) = button.findChildren(Menu)
    assert [one.text() for one in menu.actions()] == ["Send ×2", "Send ×3", "Send ×4"]
    menu.actions()[1].trigger()
    menu.close()
    stage.settle()
    assert len(stage.rig.turns.replies_in(stage.current)) == 3


def right_click(widget: QWidget) -> None:
    at = widget.rect().center()
    reason = QContextMenuEvent.Reason.Mouse
    QApplication.sendEvent(widget, QContextMenuEvent(reason, at, widget.mapToGlobal(at)))


def test_ask_again_with_another_temperature_keeps_the_options_of_the_chat(stage: Stage) -> None:
    stage.chat("A boat?", "Yes.")
    before = stage.rig.desk.get(stage.current)
    choose(stage, "Temperature 1.3")

    assert stage.engine.submitted[-1].sampling.temperature == 1.3
    assert stage.rig.desk.get(stage.current).setup == before.setup
    stage.answer("Sure.")
    assert stage.texts[-1] == "Sure."
    assert stage.window.commands[CommandId.UNDO].text() == "Undo Ask Again"
    choose(stage, "No Thinking")
    assert stage.engine.submitted[-1].thinking is False


def test_ask_again_with_a_preset_uses_its_system_prompt_for_this_answer_only(stage: Stage) -> None:
    preset = Preset(name="Pirate", system_prompt="Be a pirate.", setup=Setup(temperature=1.1))
    stage.rig.core.presets.save_preset(preset)
    stage.chat("A boat?", "Yes.")
    choose(stage, "Pirate")
    request = stage.engine.submitted[-1]

    assert request.messages[0].content == "Be a pirate."
    assert request.sampling.temperature == 1.1
    stage.answer("Arr.")
    stage.send("And?")
    assert [one.content for one in stage.engine.submitted[-1].messages] == [
        "A boat?",
        "Arr.",
        "And?",
    ]


def test_ask_again_with_another_model_loads_it_and_shows_both_answers(
    make_stage: MakeStage,
) -> None:
    stage = make_stage(catalog=FakeCatalog((card("Qwen3-0.6B"), card("Other-4B"))))
    stage.chat("A boat?", "Yes.")
    stage.engine.hold_load = True
    choose(stage, "Other 4B")
    stage.engine.finish_load()
    stage.settle()
    stage.answer("No.")

    pane = stage.pane.reading.pane
    assert pane is not None
    assert [one.item.item.text for one in pane.columns] == ["Yes.", "No."]
    assert stage.rig.models.status.name == "Other 4B"


def choose(stage: Stage, text: str) -> None:
    """Choose an entry of the menu Ask Again With."""
    (menu,) = (one for one in stage.window.findChildren(Menu) if one.title() == "Ask Again With")
    menu.aboutToShow.emit()
    (entry,) = (one for one in menu.actions() if one.text() == text)
    entry.trigger()
    stage.settle()


def test_answers_that_have_not_begun_are_submitted_to_another_model_and_read_once(
    stage: Stage,
) -> None:
    stage.engine.hold_start = True
    assert stage.rig.chat.send(stage.current, "A boat?", answers=3)
    stage.settle()
    stage.engine.hold_start = False
    stage.rig.models.choose(card("Next").path)
    stage.wait_until(lambda: len(stage.engine.submitted) == 6)
    stage.settle()
    first, *others = stage.engine.submitted[-3:]

    assert first.follows is None
    assert [one.follows for one in others] == [first.request_id] * 2
    finish_all(stage, "one", "two", "three")
    assert contents(stage, NodeId(stage.items[-1].key)) == ["one", "two", "three"]


def test_lost_model_ends_all_answers_with_their_text(stage: Stage) -> None:
    stage.chat("A boat?", "Yes.")
    replies = regenerate(stage, 2)
    problem = OutOfMemoryError("").problem
    for number in (1, 2):
        stage.engine.turn_to(number)
        stage.engine.write(f"text {number}")
    stage.engine.fail(problem)
    stage.engine.fail(problem)
    stage.settle()

    assert not stage.rig.turns.replies_in(stage.current)
    assert contents(stage, replies[0]) == ["Yes.", "text 1", "text 2"]
