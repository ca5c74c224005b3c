"""A line above the composer: a sentence, and buttons. Main thread."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt, Signal, SignalInstance
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QFrame, QWidget
from typing_extensions import override

from app.theme.tokens import Space
from app.widgets.announcer import announce
from app.widgets.button import Button
from app.widgets.button_row import ButtonRow, Label
from app.widgets.line_height import Sentences

Act = Callable[[], object] | SignalInstance

_MOST_BESIDE = 0.4  # share of the width that buttons beside the sentence may take


class ChoiceLine(QFrame):
    """A sentence with buttons. The line is hidden while its sentence is empty.

    Its label and buttons are created for the first sentence. Most windows never show one.
    """

    built = Signal()  # emitted when the label and the buttons have been created

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("offer")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._text = ""
        self._choices: tuple[tuple[str, Act], ...] = ()
        self.buttons: tuple[Button, ...] = ()  # empty before the first sentence
        self.hide()

    def set_choices(self, *choices: tuple[str, Act]) -> None:
        """Set the text of each button, and the function or signal that a click calls."""
        self._choices = choices

    def _build(self) -> None:
        self.sentence = Sentences(self)
        self.buttons = tuple(Button(text, self) for text, _act in self._choices)
        for button, (_text, act) in zip(self.buttons, self._choices, strict=True):
            button.clicked.connect(act)
        self._row = ButtonRow(*self.buttons)
        self._layout = layout = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        layout.setContentsMargins(Space.L, Space.S, Space.L, Space.S)
        layout.setSpacing(Space.S)
        layout.addWidget(self.sentence, 1)
        layout.addLayout(self._row)
        # The line ends above the composer, so the buttons stay if the sentence gets more lines.
        layout.setAlignment(self._row, Qt.AlignmentFlag.AlignBottom)
        self.built.emit()

    @property
    def first(self) -> Button:
        return self.buttons[0]

    @property
    def second(self) -> Button:
        return self.buttons[1]

    def show_text(self, text: str) -> None:
        """Show the sentence, or hide the line if the text is empty."""
        if text == self._text and self.isHidden() != bool(text):
            return
        if text and not self.buttons:
            self._build()
        if self.buttons:
            self.sentence.setText(text)
        self._text = text
        self.setAccessibleName(text)
        self.setVisible(bool(text))
        if text:
            announce(self, text)

    def show_choices(self, text: str, *labels: Label) -> None:
        """Show the sentence with these labels on the buttons, or hide the line if it is empty."""
        if text and not self.buttons:
            self._build()
        for button, label in zip(self.buttons, labels, strict=bool(text)):
            self._row.set_label(button, label)
        self.show_text(text)
        if text:
            self._arrange()

    def _arrange(self) -> None:
        """Put the buttons beside the sentence, or below it if they are wide."""
        is_wide = self._row.fit(self.width() - 2 * Space.L) <= _MOST_BESIDE * self.width()
        direction = QBoxLayout.Direction
        self._layout.setDirection(direction.LeftToRight if is_wide else direction.TopToBottom)

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self.buttons:
            self._arrange()
