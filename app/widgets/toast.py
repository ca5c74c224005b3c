"""A message that disappears after some seconds, with an optional button.

A problem stays until it was seen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import QApplication, QFrame, QHBoxLayout, QWidget
from shiboken6 import isValid

from app.theme.tokens import Millis, Size, Space
from app.widgets.announcer import announce
from app.widgets.button import Button
from app.widgets.line_height import Sentences
from app.words import commands, window as words

Act = Callable[[], object]


@dataclass(slots=True, eq=False)
class _ToastMessage:
    """A message that is on show, or covered by a later one."""

    text: str
    word: str = ""  # label of the button; empty without a button
    act: Act | None = None  # action of the button
    is_problem: bool = False  # True: it stays until it was seen
    topic: str = ""  # a later message with this topic replaces this one; empty: none does
    is_passing: bool = False  # True: it is about the newest action, and does not come back
    place: object = None  # on show only while the user is at this place; None: everywhere
    left_ms: int = 0  # time for which it is still shown

    def __post_init__(self) -> None:
        usual = Millis.UNDO if self.word else Millis.NOTE
        self.left_ms = Millis.PROBLEM if self.is_problem else usual


class Toast(QFrame):
    """A box that shows its newest message, hidden without messages.

    A message that is covered by a newer one before it could be read comes back afterwards, and so
    does every problem, for the rest of its time. A message about the newest action does not: after
    the next action its text may be untrue, and the Edit menu undoes earlier actions. A message
    about a place, such as a chat, is on show only there.
    """

    presented = Signal()  # another message is on show
    ended = Signal()  # no message is left

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("toast")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._messages: list[_ToastMessage] = []  # the last one is on show, of those for this place
        self._place: object = None
        self._label = Sentences(self)
        self.button = Button("", self)
        self.button.clicked.connect(self._on_clicked)
        self._left: QWidget | None = None  # widget that had the focus before the button
        app = QApplication.instance()
        if isinstance(app, QApplication):
            app.focusChanged.connect(self._on_focus_changed)
        self._timer = QTimer(self, singleShot=True)
        self._timer.timeout.connect(self._on_timeout)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(Space.M, Space.S, Space.S, Space.S)
        layout.setSpacing(Space.S)
        self.setMinimumHeight(Size.TOAST)
        layout.addWidget(self._label, 1)
        layout.addWidget(self.button)
        self.hide()

    @property
    def text(self) -> str:
        return self._label.text()

    def enter(self, place: object) -> None:
        """Note the user's place. Problems of other places wait until the user returns there."""
        shown = self._shown
        self._place = place
        here = (None, place)
        self._messages = [one for one in self._messages if one.is_problem or one.place in here]
        self._refresh(shown)

    def say(self, text: str, *, place: object = None) -> None:
        """Show text without a button."""
        self._add(_ToastMessage(text, place=place))

    def say_done(self, text: str) -> None:
        """Show the action that the user has just done, undone or redone."""
        self._add(_ToastMessage(text, is_passing=True))

    def warn(self, text: str, topic: str = "", *, place: object = None) -> None:
        """Show a problem for Millis.PROBLEM in the active window, or until the user closes it.

        topic: the problem replaces an earlier one with the same topic and place, unless the topic
            is empty.
        """
        self._add(_ToastMessage(text, words.CLOSE, is_problem=True, topic=topic, place=place))

    def offer(self, text: str, word: str, act: Act) -> None:
        """Show text with a button labelled `word` that calls `act`.

        The message replaces an earlier one with the same action.
        """
        self._messages = [one for one in self._messages if one.act != act]
        self._add(_ToastMessage(text, word, act))

    def offer_details(
        self, text: str, word: str, act: Act, topic: str = "", *, place: object = None
    ) -> None:
        """Show a problem with a button labelled `word` that shows its details, and closes it."""
        self._add(_ToastMessage(text, word, act, is_problem=True, topic=topic, place=place))

    def offer_undo(self, text: str, act: Act) -> None:
        """Show the action that the user has done, with a button that undoes it."""
        self._add(_ToastMessage(text, commands.UNDO, act, is_passing=True))

    def withdraw(self, act: Act) -> None:
        """Remove the message whose button calls `act`. Call this when the action is done."""
        if any(one.act == act for one in self._messages):
            self._keep([one for one in self._messages if one.act != act])

    def withdraw_topic(self, topic: str, place: object) -> None:
        """Remove the problem with a topic and place, because it is no longer true."""
        self._keep([one for one in self._messages if (one.topic, one.place) != (topic, place)])

    def dismiss(self) -> None:
        """Remove the message on show. Show the one that it has covered, if any."""
        shown = self._shown
        self._keep([one for one in self._messages if one is not shown])

    @property
    def _shown(self) -> _ToastMessage | None:
        """The newest message for the place of the user."""
        here = (None, self._place)
        return next((one for one in reversed(self._messages) if one.place in here), None)

    def _add(self, message: _ToastMessage) -> None:
        shown, topic = self._shown, (message.topic, message.place)
        earlier = [
            one
            for one in self._messages
            if (one.text, one.place) != (message.text, message.place)
            and not (message.topic and (one.topic, one.place) == topic)
            and not (one is shown and self._is_over(one))
        ]
        self._messages = [*earlier, message]
        self._refresh(shown)

    def _is_over(self, message: _ToastMessage) -> bool:
        """Return True if the message on show must not come back after a newer one."""
        was_read = self._timer.interval() - self._timer.remainingTime() >= Millis.READ
        return not message.is_problem and (message.is_passing or was_read)

    def _keep(self, messages: list[_ToastMessage]) -> None:
        shown = self._shown
        self._messages = messages
        self._refresh(shown)

    def _refresh(self, before: _ToastMessage | None) -> None:
        """Show the message that is on show now, unless it is the one before."""
        message = self._shown
        if before is not None and before is not message and self._timer.isActive():
            before.left_ms = max(Millis.READ, self._timer.remainingTime())
        if message is None:
            self._timer.stop()
            self._hand_focus_back()
            self.hide()
            self.ended.emit()
        elif message is not before:
            self._present(message)

    def _present(self, message: _ToastMessage) -> None:
        self._label.setText(message.text)
        if not message.word:
            self._hand_focus_back()
        self.button.setText(message.word)
        self.button.setAccessibleName(f"{message.word}: {message.text}")
        self.button.setVisible(bool(message.word))
        self._timer.start(message.left_ms)
        self.show()
        self.presented.emit()
        announce(self, message.text)

    def _on_timeout(self) -> None:
        """Remove the message on show.

        It stays while its button has the focus. A problem stays while another window is active.
        """
        shown = self._shown
        is_unseen = shown is not None and shown.is_problem and not self.window().isActiveWindow()
        if is_unseen or self.button.hasFocus():
            self._timer.start()
        else:
            self.dismiss()

    def _on_focus_changed(self, before: QWidget | None, now: QWidget | None) -> None:
        if now is self.button:
            self._left = before

    def _hand_focus_back(self) -> None:
        """Focus the widget that had the focus before the button."""
        left, self._left = self._left, None
        # A field for a new name, for example, is destroyed when it loses the focus.
        if self.button.hasFocus() and left is not None and isValid(left) and left.isVisible():
            left.setFocus()

    def _on_clicked(self) -> None:
        shown = self._shown
        if shown is not None:
            self.dismiss()
            if shown.act is not None:
                shown.act()
