"""Actions of the random user while reading: find a word, scroll."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from app.widgets.commands import CommandId
from tests.person.kinds.messages import open_editor
from tests.person.kinds.registry import kind
from tests.person.person import CTRL, Person


@kind("find in the chat")
def find(person: Person) -> bool:
    if not person.window.commands[CommandId.FIND].isEnabled() or open_editor(person) is not None:
        return False
    person.press(Qt.Key.Key_F, CTRL)
    bar = person.pane.find_bar
    assert bar.field.hasFocus()
    bar.field.clear()
    word = person.random.choice(("m", "the", "code", "nowhere to be found"))
    QTest.keyClicks(bar.field, word)
    assert bar.count.text() == "Not found" or " of " in bar.count.text()
    return True


@kind("go to the next find")
def find_next(person: Person) -> bool:
    bar = person.pane.find_bar
    if not bar.isVisible() and not find(person):
        return False
    if " of " not in bar.count.text():
        return False
    before = bar.count.text()
    # Return goes to the next match, so its number changes. Without a selection, the message with
    # the match was deleted: Return then selects the nearest match, which may have the same number.
    moves = not person.pane.view.selection.is_empty and not before.endswith(" of 1")
    bar.field.setFocus()
    person.press(Qt.Key.Key_Return)
    assert bar.count.text() != before or not moves or person.core.turns.live, before
    return True


@kind("end finding")
def end_finding(person: Person) -> bool:
    bar = person.pane.find_bar
    if not bar.isVisible() and not find(person):
        return False
    bar.field.setFocus()
    person.press(Qt.Key.Key_Escape)
    assert not bar.isVisible()
    return True


@kind("scroll with the wheel")
def scroll(person: Person) -> bool:
    view = person.pane.view
    bar = view.verticalScrollBar()
    if not view.isVisible() or bar.maximum() == 0:
        return False
    delta = person.random.choice((-360, -120, 120, 360))
    before, at_end = bar.value(), bar.maximum()
    viewport = view.viewport()
    middle = QPointF(viewport.rect().center())
    event = QWheelEvent(
        middle,
        QPointF(viewport.mapToGlobal(middle.toPoint())),
        QPoint(),
        QPoint(0, delta),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(viewport, event)
    person.settle()
    can_move = before > 0 if delta > 0 else before < at_end
    return can_move and bar.value() != before


@kind("scroll with keys")
def scroll_with_keys(person: Person) -> bool:
    view = person.pane.view
    bar = view.verticalScrollBar()
    if not view.isVisible() or bar.maximum() == 0 or open_editor(person) is not None:
        return False
    view.setFocus()
    keys = (
        Qt.Key.Key_Home,
        Qt.Key.Key_End,
        Qt.Key.Key_PageUp,
        Qt.Key.Key_PageDown,
        Qt.Key.Key_Space,
    )
    key = person.random.choice(keys)
    person.press(key)
    if key is Qt.Key.Key_Home:
        assert bar.value() == 0
    if key is Qt.Key.Key_End:
        assert bar.value() == bar.maximum()
    return True
