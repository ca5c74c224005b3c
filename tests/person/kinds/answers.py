"""Actions of the random user on answers: stop, regenerate, continue, fold."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from app.conversation.tree import shown_path
from app.viewmodels.transcript import ItemStatus
from app.widgets.answers.column import AnswerColumn
from app.widgets.commands import CommandId
from app.widgets.transcript.rows.row import RowAction
from tests.person.kinds.registry import kind
from tests.person.person import CTRL, LEFT, SHIFT, Person


@kind("stop with Esc")
def stop_with_escape(person: Person) -> bool:
    if person.pane.find_bar.isVisible() or not (person.answers or regenerate_with_key(person)):
        return False
    person.edit.setFocus()
    QTest.keyClick(person.edit, Qt.Key.Key_Escape)
    return _stopped(person)


@kind("stop with the button")
def stop_with_button(person: Person) -> bool:
    if not (person.answers or regenerate_with_key(person)):
        return False
    QTest.mouseClick(person.pane.composer.button, LEFT)
    return _stopped(person)


def _stopped(person: Person) -> bool:
    person.wait_until(lambda: not person.answers)
    person.settle()
    assert all(item.status is not ItemStatus.STREAMING for item in person.items)
    return True


@kind("wait for the answer")
def wait_for_answer(person: Person) -> bool:
    if not person.core.turns.live:
        return False
    person.wait_for_answers()
    return True


@kind("regenerate with the button")
def regenerate_with_button(person: Person) -> bool:
    if person.answers:
        return False
    person.stay_with_model()
    before = len(person.conversation.nodes)
    return person.click_in_transcript(RowAction.REGENERATE) and _one_more(person, before)


@kind("regenerate with the key")
def regenerate_with_key(person: Person) -> bool:
    if not person.window.commands[CommandId.REGENERATE].isEnabled():
        return False
    person.stay_with_model()
    before = len(person.conversation.nodes)
    person.press(Qt.Key.Key_R, CTRL)
    return _one_more(person, before)


@kind("regenerate with several answers")
def regenerate_several(person: Person) -> bool:
    command = person.window.commands[CommandId.ANSWERS_3]
    if person.answers or not command.isEnabled() or person.pane.composer.may_send:
        return False
    person.stay_with_model()
    before = len(person.conversation.nodes)
    person.press(Qt.Key.Key_3, CTRL | Qt.KeyboardModifier.AltModifier)
    # All answers of a greedy chat would be the same.
    assert len(person.conversation.nodes) in (before, before + 3)
    return len(person.conversation.nodes) == before + 3


@kind("use one of several answers")
def use_answer(person: Person) -> bool:
    columns = [column for column in _columns(person) if column.use.isEnabled()]
    if not columns:
        return False
    column = person.random.choice(columns)
    used = column.item.key
    person.click(column.use)
    assert used in [node.node_id for node in shown_path(person.conversation)]
    assert not _columns(person)
    return True


@kind("stop one of several answers")
def stop_one_answer(person: Person) -> bool:
    running = [column for column in _columns(person) if column.item.is_running]
    if not running:
        return False
    person.click(person.random.choice(running).again)
    return True


@kind("show or close answers side by side")
def side_by_side(person: Person) -> bool:
    before, live = person.pane.reading.is_open, set(person.core.turns.live)
    if not person.try_to_run(CommandId.SIDE_BY_SIDE):
        return False
    # A queued message whose answer begins just then closes the answers to the message before it.
    has_begun = not live.issuperset(person.core.turns.live)
    assert person.pane.reading.is_open is not before or has_begun
    return True


def _columns(person: Person) -> list[AnswerColumn]:
    """Return the columns of several answers that are in sight as a whole."""
    pane = person.pane.reading.pane
    if pane is None or not person.pane.reading.is_open:
        return []
    return [one for one in pane.columns if one.visibleRegion().boundingRect() == one.rect()]


def _one_more(person: Person, before: int) -> bool:
    assert len(person.conversation.nodes) == before + 1
    return True


@kind("request an empty answer again")
def retry_answer(person: Person) -> bool:
    if person.answers or not person.items or not person.items[-1].can_retry:
        return False
    person.stay_with_model()
    before = len(person.conversation.nodes)
    return person.click_in_transcript(RowAction.RETRY) and _one_more(person, before)


@kind("continue a stopped answer")
def continue_answer(person: Person) -> bool:
    if not person.window.commands[CommandId.CONTINUE].isEnabled():
        return False
    person.stay_with_model()
    before = person.items[-1]
    person.press(Qt.Key.Key_Return, CTRL | SHIFT)
    last = person.items[-1]
    assert last.key == before.key
    assert last.text.startswith(before.text)
    return True


@kind("fold or unfold thinking")
def toggle_thinking(person: Person) -> bool:
    return person.click_in_transcript(RowAction.TOGGLE_THINKING)


@kind("unfold a long message")
def toggle_fold(person: Person) -> bool:
    return person.click_in_transcript(RowAction.TOGGLE_FOLD)
