"""A row of buttons that fits a narrow place. Main thread."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import Qt
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout

from app.theme.tokens import Space
from app.widgets.button import Button
from app.widgets.menu_text import plain

_MIDDLE = Qt.TextElideMode.ElideMiddle


@dataclass(frozen=True, slots=True)
class Label:
    """The text of a button."""

    text: str  # empty: the button is hidden
    name: str = ""  # the part of the text that may be shortened; empty: any part

    def shortened(self, metrics: QFontMetrics, room: int) -> str:
        """Return the text with the middle of the name left out, if it is wider than `room` px."""
        before, name, after = self.text.partition(self.name) if self.name else ("", self.text, "")
        width = metrics.horizontalAdvance
        if width(self.text) <= room:
            return self.text
        left = room - width(before) - width(after)
        return f"{before}{metrics.elidedText(name, _MIDDLE, left)}{after}"


class ButtonRow(QVBoxLayout):
    """Buttons from left to right, in several lines if one is too narrow for all of them."""

    def __init__(self, *buttons: Button) -> None:
        super().__init__()
        self._labels = {button: Label(button.text()) for button in buttons}
        self.setSpacing(Space.S)
        for button in buttons:
            button.setMinimumWidth(1)  # a long text does not widen the window
        self._lines = [QHBoxLayout() for _ in buttons]
        for line in self._lines:
            line.setSpacing(Space.S)
        self._filled: list[list[Button]] = []  # the buttons of each line
        self._fill([list(buttons)])

    def set_label(self, button: Button, label: Label) -> None:
        """Set the text of a button. Call fit() afterwards."""
        self._labels[button] = label
        button.setAccessibleName(label.text)
        button.setVisible(bool(label.text))

    def fit(self, room: int) -> int:
        """Arrange the buttons in a place that is `room` px wide. Return their width in one line."""
        lines: list[list[Button]] = [[]]
        left, total = room, -Space.S
        for button, label in self._labels.items():
            shown = label.shortened(button.fontMetrics(), room - 2 * Space.L)
            button.setText(plain(shown))
            button.setToolTip(label.text if shown != label.text else "")
            width = button.sizeHint().width()
            if button.isHidden():
                width = -Space.S
            elif width > left and lines[-1]:
                lines.append([])
                left = room
            lines[-1].append(button)
            left -= width + Space.S
            total += width + Space.S
        self._fill(lines)
        return total

    def _fill(self, lines: list[list[Button]]) -> None:
        """Put the buttons into these lines. Lay out nothing again if they are there."""
        if lines == self._filled:
            return
        self._filled = lines
        for line in self._lines:
            self.removeItem(line)
            while line.takeAt(0) is not None:
                pass
        for line, buttons in zip(self._lines, lines, strict=False):
            for button in buttons:
                line.addWidget(button)
            line.addStretch(1)
            self.addLayout(line)
