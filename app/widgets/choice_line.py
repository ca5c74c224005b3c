"""A line above the composer: a sentence, and buttons. Main thread."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QFrame, QWidget
from typing_extensions import override

from app.theme.tokens import Space
from app.widgets.announcer import announce
from app.widgets.button import Button
from app.widgets.button_row import ButtonRow, Label
from app.widgets.line_height import Sentences

_MOST_BESIDE = 0.4  # share of the width that buttons beside the sentence may take


class ChoiceLine(QFrame):
    """A sentence with buttons. The line is hidden while its sentence is empty.

    The owner connects `clicked` of the buttons.
    """

    def __init__(self, parent: QWidget, *texts: str) -> None:
        """Create a hidden line with one button for each text."""
        super().__init__(parent)
        self.setObjectName("offer")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.sentence = Sentences(self)
        self.buttons = tuple(Button(text, self) for text in texts)
        self._row = ButtonRow(*self.buttons)
        self._layout = layout = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        layout.setContentsMargins(Space.L, Space.S, Space.L, Space.S)
        layout.setSpacing(Space.S)
        layout.addWidget(self.sentence, 1)
        layout.addLayout(self._row)
        # The line ends above the composer, so the buttons stay if the sentence gets more lines.
        layout.setAlignment(self._row, Qt.AlignmentFlag.AlignBottom)
        self.hide()

    @property
    def first(self) -> Button:
        return self.buttons[0]

    @property
    def second(self) -> Button:
        return self.buttons[1]

    def show_text(self, text: str) -> None:
        """Show the sentence, or hide the line if the text is empty."""
        if text == self.sentence.text() and self.isHidden() != bool(text):
            return
        self.sentence.setText(text)
        self.setAccessibleName(text)
        self.setVisible(bool(text))
        if text:
            announce(self, text)

    def show_choices(self, text: str, *labels: Label) -> None:
        """Show the sentence with these labels on the buttons."""
        for button, label in zip(self.buttons, labels, strict=True):
            self._row.set_label(button, label)
        self.show_text(text)
        self._arrange()

    def _arrange(self) -> None:
        """Put the buttons beside the sentence, or below it if they are wide."""
        is_wide = self._row.fit(self.width() - 2 * Space.L) <= _MOST_BESIDE * self.width()
        direction = QBoxLayout.Direction
        self._layout.setDirection(direction.LeftToRight if is_wide else direction.TopToBottom)

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()
