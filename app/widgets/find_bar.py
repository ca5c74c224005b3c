"""The bar above the transcript that finds text in the shown conversation."""

from __future__ import annotations

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QApplication, QHBoxLayout, QLabel, QWidget
from typing_extensions import override

from app.theme.icons import Icon
from app.theme.palette import Theme
from app.theme.tokens import Size, Space
from app.viewmodels import figures
from app.viewmodels.find import FindPosition
from app.widgets.announcer import Announcer
from app.widgets.commands import Actions, CommandId
from app.widgets.fields import LineField
from app.widgets.icon_button import IconButton
from app.widgets.transcript.view import TranscriptView
from app.words import commands, window as words


class FindField(LineField):
    """The search field. Return: next match. Shift+Return: previous match. Esc: end the search."""

    stepped = Signal(int)  # argument: 1 for the next match, -1 for the previous match
    ended = Signal()

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        match event.key():
            case Qt.Key.Key_Return | Qt.Key.Key_Enter:
                back = event.modifiers() & Qt.KeyboardModifier.ShiftModifier
                self.stepped.emit(-1 if back else 1)
            case Qt.Key.Key_Escape:
                self.ended.emit()
            case _:
                super().keyPressEvent(event)


class FindBar(QWidget):
    """The find bar: search field, number of matches, buttons. Hidden except during a search."""

    opened = Signal()  # emitted before the bar is shown
    # emitted when the bar is hidden while it has the focus; the receiver focuses another widget
    left = Signal()

    def __init__(self, theme: Theme, view: TranscriptView, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("findBar")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._view = view
        self.field = FindField(self)
        self.count = QLabel(self)
        self.announcer = Announcer(self)
        self._previous = IconButton(theme, Icon.CHEVRON_UP, commands.FIND_PREVIOUS, self)
        self._next = IconButton(theme, Icon.CHEVRON_DOWN, commands.FIND_NEXT, self)
        self._close = IconButton(theme, Icon.CLOSE, words.CLOSE_FIND, self)
        self._build()
        self._connect()
        self.hide()

    def bind(self, actions: Actions) -> None:
        """Bind the buttons to the menu's actions, and show their shortcuts in the tooltips."""
        self._previous.trigger(actions[CommandId.FIND_PREVIOUS])
        self._next.trigger(actions[CommandId.FIND_NEXT])

    def begin_search(self) -> None:
        """Show the bar and focus the search field, with the last search text selected."""
        was_hidden = not self.isVisible()
        if was_hidden:
            self.opened.emit()
        self.show()
        self.field.setFocus()
        self.field.selectAll()
        if was_hidden:
            self._look()

    def look_up(self, text: str, key: str) -> None:
        """Find a text in a message and leave the focus where it is.

        The bar stays hidden if the message does not show the text, for example if it stands in an
        attached file.
        """
        with QSignalBlocker(self.field):
            self.field.setText(text)
        found = self._view.find_controller.look_in(key, text)
        self._show(found)
        self.setVisible(found.total > 0)

    def step(self, step: int) -> None:
        """Go to the next (1) or previous (-1) match. If the bar is hidden, only open it."""
        if self.isVisible():
            self._show(self._view.find_controller.go(step))
            self.announcer.say(self.count.text())
        else:
            self.begin_search()

    def end(self) -> None:
        """Hide the bar and end the search. The last match stays selected in the transcript."""
        if not self.isVisible():
            return
        had_focus = self.isAncestorOf(QApplication.focusWidget() or self._view)
        self.hide()
        self._view.find_controller.look_for("")
        self.announcer.say("")
        if had_focus:
            self.left.emit()

    def _build(self) -> None:
        self.field.setPlaceholderText(words.FIND_FIELD)
        self.field.setAccessibleName(words.FIND_FIELD)
        self.field.setMaximumWidth(Size.SIDEBAR_MAX)
        self.count.setProperty("tone", "secondary")
        self.count.setMinimumWidth(Space.HUGE * 2)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(Space.L, Space.S, Space.L, Space.S)
        layout.setSpacing(Space.S)
        layout.addStretch()
        for part in (self.field, self.count, self._previous, self._next, self._close):
            layout.addWidget(part, 1 if part is self.field else 0)

    def _connect(self) -> None:
        self.field.textChanged.connect(self._look)
        self.field.stepped.connect(self.step)
        self.field.ended.connect(self.end)
        self._view.find_controller.counted.connect(self._show)
        self._close.clicked.connect(self.end)

    def _look(self) -> None:
        self._show(self._view.find_controller.look_for(self.field.text()))
        self.announcer.say(self.count.text())

    def _show(self, found: FindPosition) -> None:
        """Show the match number and the total, without an announcement to screen readers."""
        looks = bool(self.field.text().strip())
        place = words.found(number=figures.count(found.number), total=figures.count(found.total))
        self.count.setText(place if found.total else words.NOT_FOUND if looks else "")
        for button in (self._previous, self._next):
            button.setEnabled(found.total > 0)
