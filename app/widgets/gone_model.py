"""The line above the composer while the model in use is gone, with what helps. Main thread."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QFrame, QHBoxLayout, QWidget
from typing_extensions import override

from app.theme.tokens import Space
from app.widgets.announcer import announce
from app.widgets.button import Button
from app.widgets.line_height import Sentences
from app.words import commands


class GoneModel(QFrame):
    """A sentence with buttons to choose and to get another model. Hidden if no model is gone."""

    choose_requested = Signal()
    get_requested = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("offer")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.sentence = Sentences(self)
        self.choose_button = Button(commands.CHOOSE_MODEL, self)
        self.get_button = Button(commands.GET_MODELS, self)
        self.choose_button.clicked.connect(self.choose_requested)
        self.get_button.clicked.connect(self.get_requested)
        self._buttons = QHBoxLayout()
        self._buttons.setSpacing(Space.S)
        self._buttons.addWidget(self.choose_button)
        self._buttons.addWidget(self.get_button)
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

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        is_wide = self.width() >= 2 * self._buttons.sizeHint().width()
        direction = QBoxLayout.Direction
        self._layout.setDirection(direction.LeftToRight if is_wide else direction.TopToBottom)
