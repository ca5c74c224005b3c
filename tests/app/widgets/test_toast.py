"""Messages that follow each other in one toast."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import Qt, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit, QWidget
from pytestqt.qtbot import QtBot
from shiboken6 import delete

from app.theme.tokens import Millis
from app.widgets.toast import Toast


@pytest.fixture
def toast(qtbot: QtBot) -> Iterator[Toast]:
    window = QWidget()
    qtbot.addWidget(window)
    QLineEdit(window).setFocus()
    window.show()
    yield Toast(window)
    window.close()


def timer_of(toast: Toast) -> QTimer:
    (timer,) = toast.findChildren(QTimer)
    return timer


def shown(toast: Toast) -> str:
    return toast.text if toast.isVisible() else ""


def end(toast: Toast) -> None:
    """End the time of the message on show."""
    timer = timer_of(toast)
    assert timer.isActive()
    timer.timeout.emit()


def test_problem_stays_while_another_window_is_active(toast: Toast, qtbot: QtBot) -> None:
    other = QWidget()
    qtbot.addWidget(other)
    other.show()
    other.activateWindow()
    qtbot.waitUntil(other.isActiveWindow)
    toast.warn("It failed.")
    assert timer_of(toast).interval() > Millis.UNDO
    end(toast)
    assert shown(toast) == "It failed."
    toast.window().activateWindow()
    qtbot.waitUntil(toast.window().isActiveWindow)
    end(toast)
    assert shown(toast) == ""


def test_problem_comes_back_after_a_later_message(toast: Toast) -> None:
    toast.warn("It failed.")
    toast.offer("“One” has finished", "Open", lambda: None)
    assert shown(toast) == "“One” has finished"
    end(toast)
    assert shown(toast) == "It failed."
    assert toast.button.text() == "Close"
    toast.button.click()
    assert shown(toast) == ""


def test_problem_that_comes_back_stays_for_the_rest_of_its_time(toast: Toast) -> None:
    toast.warn("It failed.")
    timer_of(toast).start(Millis.READ)  # most of its time is over
    for text in ("First", "Second", "Third"):
        toast.say_done(text)
        end(toast)
        assert shown(toast) == "It failed."
        assert timer_of(toast).interval() <= 2 * Millis.READ  # a coarse timer
    end(toast)
    assert shown(toast) == ""


def test_problem_of_a_topic_ends_when_it_is_no_longer_true(toast: Toast) -> None:
    toast.enter("A")
    toast.warn("It failed.", "files", place="A")
    toast.warn("It failed too.", "files", place="B")
    toast.say("First")
    toast.withdraw_topic("files", "A")
    assert shown(toast) == "First"
    end(toast)
    assert shown(toast) == ""
    toast.enter("B")
    assert shown(toast) == "It failed too."


def test_message_that_was_covered_at_once_comes_back(toast: Toast) -> None:
    toast.say("First")
    toast.say("Second")
    end(toast)
    assert shown(toast) == "First"
    end(toast)
    assert shown(toast) == ""


def test_message_that_was_read_does_not_come_back(
    toast: Toast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Millis, "READ", -Millis.UNDO)  # a coarse timer may have more than UNDO left
    toast.say("First")
    toast.say("Second")
    end(toast)
    assert shown(toast) == ""


def test_offer_to_undo_is_replaced_by_the_next_one(toast: Toast) -> None:
    undone: list[str] = []
    toast.offer_undo("Deleted “One”", lambda: undone.append("One"))
    toast.offer_undo("Deleted “Two”", lambda: undone.append("Two"))
    toast.button.click()
    assert undone == ["Two"]
    assert shown(toast) == ""


def test_message_about_an_action_does_not_come_back_after_the_next_one(toast: Toast) -> None:
    toast.say("First")
    toast.say_done("Undone: Send")
    toast.say_done("Redone: Send")
    assert shown(toast) == "Redone: Send"
    end(toast)
    assert shown(toast) == "First"


def test_withdrawn_message_is_removed_also_below_another_one(toast: Toast) -> None:
    def cancel() -> None: ...

    toast.offer("Importing 0%", "Cancel", cancel)
    toast.offer("Importing 50%", "Cancel", cancel)
    toast.warn("It failed.")
    toast.withdraw(cancel)
    assert shown(toast) == "It failed."
    toast.dismiss()
    assert shown(toast) == ""


def test_same_problem_is_shown_once(toast: Toast) -> None:
    for _ in range(2):
        toast.warn("It failed.")
    toast.button.click()
    assert shown(toast) == ""


def offer_with_focus(toast: Toast, qtbot: QtBot) -> None:
    """Offer an undo, and give its button the focus."""
    toast.offer_undo("Deleted.", lambda: None)
    toast.button.setFocus(Qt.FocusReason.TabFocusReason)
    qtbot.waitUntil(toast.button.hasFocus)


def test_button_with_the_focus_keeps_the_message_and_hands_the_focus_back(
    toast: Toast, qtbot: QtBot
) -> None:
    (field,) = toast.window().findChildren(QLineEdit)
    toast.window().activateWindow()
    qtbot.waitUntil(field.hasFocus)
    offer_with_focus(toast, qtbot)
    end(toast)
    assert shown(toast) == "Deleted."
    QTest.keyClick(toast.button, Qt.Key.Key_Space)
    assert shown(toast) == ""
    assert field.hasFocus()


def test_message_without_a_button_hands_the_focus_back(toast: Toast, qtbot: QtBot) -> None:
    first, last = QLineEdit(toast.window()), QLineEdit(toast.window())
    for field in (first, last):
        field.show()
    toast.window().activateWindow()
    last.setFocus()
    qtbot.waitUntil(last.hasFocus)
    offer_with_focus(toast, qtbot)
    toast.say("Saved.")
    assert last.hasFocus()


def test_widget_that_had_the_focus_before_the_button_may_be_destroyed(
    toast: Toast, qtbot: QtBot
) -> None:
    (field,) = toast.window().findChildren(QLineEdit)
    toast.window().activateWindow()
    qtbot.waitUntil(field.hasFocus)
    offer_with_focus(toast, qtbot)
    delete(field)
    QTest.keyClick(toast.button, Qt.Key.Key_Space)
    assert shown(toast) == ""
