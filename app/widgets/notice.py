"""A card above the composer: what went wrong, why, and what to do."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from app.theme.icons import Icon
from app.theme.palette import Theme
from app.theme.tokens import Size, Space
from app.widgets.announcer import announce
from app.widgets.icon_button import IconButton
from app.widgets.line_height import Sentences
from app.words import window as words
from engine.types import Problem


class Notice(QFrame):
    """Stays until it is closed or what it speaks of is over."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("notice")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setMaximumWidth(Size.COLUMN + Space.L)
        self._title = Sentences(self)
        self._title.setProperty("role", "title")
        self._text = Sentences(self)
        for label in (self._title, self._text):
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.button = QPushButton(self)
        self.button.clicked.connect(self._on_clicked)
        self.close_button = IconButton(theme, Icon.CLOSE, words.CLOSE, self)
        self.close_button.clicked.connect(self.hide)
        self._act: Callable[[], object] | None = None
        top = QHBoxLayout()
        top.addWidget(self._title, 1)
        top.addWidget(self.close_button, 0, Qt.AlignmentFlag.AlignTop)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(Space.L, Space.S, Space.S, Space.M)
        layout.setSpacing(Space.XS)
        layout.addLayout(top)
        layout.addWidget(self._text)
        layout.addSpacing(Space.XS)
        layout.addWidget(self.button, 0, Qt.AlignmentFlag.AlignLeft)
        self.hide()

    @property
    def text(self) -> str:
        return f"{self._title.text()} {self._text.text()}"

    def say(self, problem: Problem) -> None:
        self._present(problem)
        self.button.hide()

    def offer(self, problem: Problem, word: str, act: Callable[[], object]) -> None:
        """Say the problem with a button that does act."""
        self._act = act
        self._present(problem)
        self.button.setText(word)
        self.button.show()

    def _present(self, problem: Problem) -> None:
        self._title.setText(problem.title)
        self._text.setText(" ".join(part for part in (problem.cause, problem.advice) if part))
        self.setAccessibleName(str(problem))
        self.show()
        announce(self, str(problem))

    def _on_clicked(self) -> None:
        act, self._act = self._act, None
        self.hide()
        if act is not None:
            act()
