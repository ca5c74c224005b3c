"""What stands above and below the composer in an empty chat: a question, recent chats, a word on the model."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QLabel, QPushButton, QVBoxLayout, QWidget

from app.conversation.tree import ConversationSummary
from app.theme.tokens import Size, Space
from app.words import commands, window as words

MAX_RECENT = 4


class Question(QWidget):
    """The heading, and one sentence on the model where it needs one."""

    choose_requested = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.title = QLabel(words.QUESTION, self)
        self.title.setProperty("type", "empty")
        self.sentence = QLabel(self)
        self.sentence.setProperty("tone", "secondary")
        self.button = QPushButton(commands.CHOOSE_MODEL, self)
        self.button.clicked.connect(self.choose_requested)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(Space.XL, 0, Space.XL, Space.L)
        layout.setSpacing(Space.S)
        for part in (self.title, self.sentence):
            part.setAlignment(Qt.AlignmentFlag.AlignHCenter)
            part.setWordWrap(True)
            layout.addWidget(part)
        layout.addWidget(self.button, 0, Qt.AlignmentFlag.AlignHCenter)
        self.set_sentence("")

    @property
    def has_sentence(self) -> bool:
        return bool(self.sentence.text())

    def set_sentence(self, text: str) -> None:
        """Say this about the model, with the way to another one."""
        self.sentence.setText(text)
        self.sentence.setVisible(bool(text))
        self.button.setVisible(bool(text))


class RecentChats(QWidget):
    """Up to four conversations to go back to."""

    chosen = Signal(object)  # ConversationId

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._summaries: tuple[ConversationSummary, ...] = ()
        self._buttons: list[QPushButton] = []
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(Space.HAIR)
        self._label = QLabel(words.RECENT, self)
        self._label.setProperty("type", "section")
        self._label.setProperty("tone", "tertiary")
        self._label.setContentsMargins(Space.M, 0, 0, Space.XS)
        layout.addWidget(self._label)
        for number in range(MAX_RECENT):
            button = QPushButton(self)
            button.setProperty("kind", "row")
            button.clicked.connect(lambda _checked=False, at=number: self._on_clicked(at))
            layout.addWidget(button)
            self._buttons.append(button)
        self.setMaximumWidth(Size.COLUMN)

    def show_recent(self, summaries: Sequence[ConversationSummary]) -> None:
        """Newest first."""
        self._summaries = tuple(summaries[:MAX_RECENT])
        self._label.setVisible(bool(summaries))
        for number, button in enumerate(self._buttons):
            button.setVisible(number < len(self._summaries))
            if number < len(self._summaries):
                title = self._summaries[number].title
                room = Size.COLUMN - Size.CONTROL_LARGE * 2
                metrics = QFontMetrics(button.font())
                button.setText(metrics.elidedText(title, Qt.TextElideMode.ElideRight, room))
                button.setAccessibleName(words.go_on_with(title))

    def _on_clicked(self, number: int) -> None:
        self.chosen.emit(self._summaries[number].conversation_id)
