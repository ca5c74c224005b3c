"""A message that disappears after 8 seconds, with an optional button."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QFrame, QHBoxLayout, QWidget

from app.theme.tokens import Millis, Size, Space
from app.widgets.announcer import announce
from app.widgets.button import Button
from app.widgets.line_height import Sentences


class Toast(QFrame):
    """A box with a message, hidden until its first message. A new message replaces the old one."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("toast")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._label = Sentences(self)
        self.button = Button("", self)
        self.button.clicked.connect(self._on_clicked)
        # action of the button; None after the action has run
        self._act: Callable[[], object] | None = None
        self._timer = QTimer(self, singleShot=True, interval=Millis.UNDO)
        self._timer.timeout.connect(self.hide)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(Space.M, Space.S, Space.S, Space.S)
        layout.setSpacing(Space.S)
        self.setMinimumHeight(Size.CONTROL + 2 * Space.S)  # the same with and without a button
        layout.addWidget(self._label, 1)
        layout.addWidget(self.button)
        self.hide()

    @property
    def text(self) -> str:
        return self._label.text()

    def say(self, text: str) -> None:
        """Show text without a button."""
        self._act = None
        self.button.hide()
        self._present(text)

    def offer(self, text: str, word: str, act: Callable[[], object]) -> None:
        """Show text with a button labelled `word` that calls `act`."""
        self._act = act
        self.button.setText(word)
        self.button.setAccessibleName(f"{word}: {text}")
        self.button.show()
        self._present(text)

    def withdraw(self, act: Callable[[], object]) -> None:
        """Hide the toast if its button calls `act`. Call this when the action is done."""
        if act is self._act:
            self.dismiss()

    def dismiss(self) -> None:
        self._timer.stop()
        self.hide()

    def _present(self, text: str) -> None:
        self._label.setText(text)
        self._timer.start()
        self.show()
        announce(self, text)

    def _on_clicked(self) -> None:
        act, self._act = self._act, None
        self.dismiss()
        if act is not None:
            act()
