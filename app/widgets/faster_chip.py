"""The chip that shows and sets whether drafts may make the answers of a conversation faster."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import Signal
from PySide6.QtGui import QAction, QActionGroup
from PySide6.QtWidgets import QWidget

from app.conversation.tree import Setup
from app.widgets.button import Button
from app.widgets.menu import Menu
from app.words import inspector as words

# Columns: value of Setup.faster_answers (None: as in Settings), text in the menu, text on the chip.
CHOICES: tuple[tuple[bool | None, str, str], ...] = (
    (None, words.FASTER_AS_SETTINGS, words.FASTER_CHIP_AS_SETTINGS),
    (True, words.FASTER_ON, words.FASTER_CHIP_ON),
    (False, words.FASTER_OFF, words.FASTER_CHIP_OFF),
)


class FasterChip(Button):
    """A button with a menu: faster answers as in Settings, on or off."""

    changed = Signal(object)  # argument: a Setup

    def __init__(self, parent: QWidget) -> None:
        super().__init__("", parent)
        self._setup = Setup()
        self.setProperty("kind", "chip")
        self.setToolTip(words.FASTER_TIP)
        menu = Menu(self)
        group = QActionGroup(menu)
        self._actions: list[QAction] = []
        for value, name, _shown in CHOICES:
            action = menu.addAction(name)
            action.setCheckable(True)
            action.triggered.connect(lambda _checked=False, chosen=value: self._choose(chosen))
            group.addAction(action)
            self._actions.append(action)
        self.setMenu(menu)
        self.show_setup(self._setup)

    def show_setup(self, setup: Setup) -> None:
        """Show a conversation's setup."""
        self._setup = setup
        at = [value for value, _name, _shown in CHOICES].index(setup.faster_answers)
        self._actions[at].setChecked(True)
        self.setText(CHOICES[at][2])
        self.setAccessibleName(self.text())

    def _choose(self, faster: bool | None) -> None:  # noqa: FBT001 (slot)
        self.changed.emit(replace(self._setup, faster_answers=faster))
