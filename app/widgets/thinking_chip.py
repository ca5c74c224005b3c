"""The chip that shows and sets whether the model thinks before it answers."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAction, QActionGroup, QPaintEvent
from PySide6.QtWidgets import QStyle, QStyleOptionButton, QStylePainter, QWidget
from typing_extensions import override

from app.conversation.tree import Setup
from app.theme.tokens import Space
from app.widgets.button import Button
from app.widgets.menu import Menu
from app.words import composer as words, costs
from engine.events import ModelFacts

_ELLIPSIS = "…"
# Columns: value of Setup.thinking (None: the model's default), text in the menu, text on the chip.
CHOICES: tuple[tuple[bool | None, str, str], ...] = (
    (None, words.DEFAULT, words.THINKING_DEFAULT),
    (True, words.ON, words.THINKING_ON),
    (False, words.OFF, words.THINKING_OFF),
)


class ThinkingChip(Button):
    """A button with a menu: thinking by default, on or off.

    For some models the menu also has: keep earlier thoughts. In a narrow place the chip has only
    the text of the menu.
    """

    changed = Signal(object)  # argument: a Setup
    # The menu is shown. Argument: list of the other setups, each with a function that adds its cost
    # to the text of its entry.
    opened = Signal(object)

    def __init__(self, parent: QWidget) -> None:
        super().__init__("", parent)
        self._setup = Setup()
        self._short = ""  # text in a narrow place
        self.setProperty("kind", "chip")
        self.setMinimumWidth(1)
        self.setToolTip(words.THINKING_TIP)
        menu = Menu(self)
        group = QActionGroup(menu)
        self._actions: list[QAction] = []
        for value, name, _shown in CHOICES:
            action = menu.addAction(name)
            action.setCheckable(True)
            action.triggered.connect(lambda _checked=False, chosen=value: self._choose(chosen))
            group.addAction(action)
            self._actions.append(action)
        self._separator = menu.addSeparator()
        self._keep = menu.addAction(words.KEEP_THOUGHTS)
        self._keep.setCheckable(True)
        self._keep.triggered.connect(self._choose_keep)
        self._note = menu.addAction(words.KEEP_THOUGHTS_NOTE)
        self._note.setEnabled(False)
        menu.aboutToShow.connect(self._on_opened)
        self.setMenu(menu)
        self.show_setup(self._setup, None)

    def show_setup(self, setup: Setup, facts: ModelFacts | None) -> None:
        """Show this setup. Hide the chip if no model is loaded or if the model cannot think."""
        self._setup = setup
        at = [value for value, _name, _shown in CHOICES].index(setup.thinking)
        self._actions[at].setChecked(True)
        self._keep.setChecked(setup.keep_thinking)
        for action in (self._separator, self._keep, self._note):
            action.setVisible(facts is not None and facts.can_keep_thinking)
        _value, self._short, text = CHOICES[at]
        self.setText(text)
        self.setAccessibleName(self.text())
        self.setVisible(facts is not None and facts.has_thinking)

    @override
    def paintEvent(self, arg__1: QPaintEvent) -> None:
        option = QStyleOptionButton()
        self.initStyleOption(option)
        room = self.width() - 2 * (Space.M + 1)  # the style sheet sets the padding and the border
        metrics = self.fontMetrics()
        if metrics.horizontalAdvance(self.text()) > room:
            short = metrics.elidedText(self._short, Qt.TextElideMode.ElideRight, room)
            option.text = short or _ELLIPSIS  # in the padding, rather than no text
        QStylePainter(self).drawControl(QStyle.ControlElement.CE_PushButton, option)

    def _on_opened(self) -> None:
        entries: list[tuple[Setup, QAction, str]] = [
            (replace(self._setup, thinking=value), action, name)
            for (value, name, _shown), action in zip(CHOICES, self._actions, strict=True)
        ]
        if self._keep.isVisible():
            kept = replace(self._setup, keep_thinking=not self._setup.keep_thinking)
            entries.append((kept, self._keep, words.KEEP_THOUGHTS))
        for _setup, action, name in entries:
            action.setText(name)
        self.opened.emit(
            [
                (setup, partial(_add_cost, action, name))
                for setup, action, name in entries
                if setup != self._setup
            ]
        )

    def _choose(self, thinking: bool | None) -> None:  # noqa: FBT001 (slot)
        self.changed.emit(replace(self._setup, thinking=thinking))

    def _choose_keep(self, keep: bool) -> None:  # noqa: FBT001 (slot)
        self.changed.emit(replace(self._setup, keep_thinking=keep))


def _add_cost(action: QAction, name: str, cost: str) -> None:
    action.setText(costs.of_action(name, cost))
