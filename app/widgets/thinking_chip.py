"""The chip that says whether the model reasons before it answers, with a menu to change it."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtGui import QAction, QActionGroup
from PySide6.QtWidgets import QMenu, QPushButton, QWidget

CHOICES: tuple[tuple[str, bool | None], ...] = (
    ("default", None),
    ("on", True),
    ("off", False),
)


class ThinkingChip(QPushButton):
    """Three choices: the model's own way, on, off."""

    chosen = Signal(object)  # bool | None

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setProperty("kind", "chip")
        self.setToolTip("Let the model reason before it answers")
        menu = QMenu(self)
        group = QActionGroup(menu)
        self._actions: list[QAction] = []
        for word, value in CHOICES:
            action = menu.addAction(word.capitalize())
            action.setCheckable(True)
            action.triggered.connect(lambda _checked=False, chosen=value: self.chosen.emit(chosen))
            group.addAction(action)
            self._actions.append(action)
        self.setMenu(menu)
        self.show_choice(None)

    def show_choice(self, thinking: bool | None) -> None:  # noqa: FBT001 (the value that is shown)
        values = [value for _word, value in CHOICES]
        at = values.index(thinking)
        self._actions[at].setChecked(True)
        self.setText(f"Thinking: {CHOICES[at][0]}")
        self.setAccessibleName(self.text())
