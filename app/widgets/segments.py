"""A segmented control: adjacent buttons, one of which is checked."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QWidget

from app.widgets.button import Button, focus_checked


class Segments(QWidget):
    """A segmented control with one button per value. `name` is its accessible name.

    Tabs have a quieter look than a choice, so that the accent is left to the page's own button.
    """

    chosen = Signal(object)  # argument: value of the button that the user clicked

    def __init__(
        self, name: str, words: Mapping[object, str], parent: QWidget, *, are_tabs: bool = False
    ) -> None:
        super().__init__(parent)
        self.setAccessibleName(name)
        self._group = QButtonGroup(self)
        self.buttons: dict[object, Button] = {}
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        places = ["first", *["middle"] * (len(words) - 2), "last"]
        for (value, text), place in zip(words.items(), places, strict=True):
            button = Button(text, self)
            button.setCheckable(True)
            button.setProperty("kind", "segment")
            button.setProperty("place", place)
            button.setProperty("role", "tab" if are_tabs else None)
            button.setAccessibleName(f"{name}: {text}")
            self._group.addButton(button)
            self.buttons[value] = button
            layout.addWidget(button)
        focus_checked(self._group)
        self._group.buttonClicked.connect(self._on_clicked)

    def show_value(self, value: object) -> None:
        self.buttons[value].setChecked(True)

    def _on_clicked(self, clicked: Button) -> None:
        self.chosen.emit(next(value for value, one in self.buttons.items() if one is clicked))
