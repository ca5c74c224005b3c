"""A line above the composer: a sentence, and up to two buttons. Main thread."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QFrame, QWidget
from typing_extensions import override

from app.theme.tokens import Space
from app.widgets.announcer import announce
from app.widgets.button import Button
from app.widgets.line_height import Sentences


class ChoiceLine(QFrame):
    """A sentence with buttons. The line is hidden while its sentence is empty.

    The owner connects `clicked` of the two buttons.
    """

    def __init__(self, first: str, second: str, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("offer")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.sentence = Sentences(self)
        self.first = Button(first, self)
        self.second = Button(second, self)
        self._names = (first, second)  # full texts of the buttons
        self._buttons = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        for button in (self.first, self.second):
            button.setMinimumWidth(1)  # a long text is shortened and does not widen the window
        self._buttons.setSpacing(Space.S)
        self._buttons.addWidget(self.first)
        self._buttons.addWidget(self.second)
        self._layout = layout = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        layout.setContentsMargins(Space.L, Space.S, Space.L, Space.S)
        layout.setSpacing(Space.S)
        layout.addWidget(self.sentence, 1)
        layout.addLayout(self._buttons)
        self.hide()

    def show_text(self, text: str) -> None:
        """Show the sentence, or hide the line if the text is empty."""
        if text == self.sentence.text() and self.isHidden() != bool(text):
            return
        self.sentence.setText(text)
        self.setAccessibleName(text)
        self.setVisible(bool(text))
        if text:
            announce(self, text)

    def show_choices(self, text: str, first: str, second: str) -> None:
        """Show the sentence with these texts on the buttons. A button without a text is hidden."""
        self._names = (first, second)
        for button, name in zip((self.first, self.second), self._names, strict=True):
            button.setVisible(bool(name))
            button.setAccessibleName(name)
        self.show_text(text)
        self._arrange()

    def _arrange(self) -> None:
        """Put the buttons beside or below the sentence. Stack and shorten buttons that are too wide."""
        direction, room = QBoxLayout.Direction, self.width() - 2 * Space.L
        middle = Qt.TextElideMode.ElideMiddle
        for button, name in zip((self.first, self.second), self._names, strict=True):
            shown = button.fontMetrics().elidedText(name, middle, room - 2 * Space.L)
            button.setText(shown)
            button.setToolTip(name if shown != name else "")
        self._buttons.setDirection(direction.LeftToRight)
        width = self._buttons.sizeHint().width()
        is_stacked, is_wide = width > room, self.width() >= 2 * width
        if is_stacked:
            self._buttons.setDirection(direction.TopToBottom)
        # Only stacked buttons fill the width.
        left = Qt.AlignmentFlag(0) if is_stacked else Qt.AlignmentFlag.AlignLeft
        self._layout.setAlignment(self._buttons, Qt.AlignmentFlag(0) if is_wide else left)
        self._layout.setDirection(direction.LeftToRight if is_wide else direction.TopToBottom)

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()
