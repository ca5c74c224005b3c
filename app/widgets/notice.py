"""The card above the composer that reports a problem: what happened, why, and what to do.

The transcript paints the same card for a failed answer.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app.theme.icons import Icon
from app.theme.palette import Theme
from app.theme.tokens import Space
from app.widgets.announcer import announce
from app.widgets.button import Button
from app.widgets.copy_button import CopyButton
from app.widgets.details import Details
from app.widgets.icon_button import IconButton
from app.widgets.line_height import Sentences
from app.words import problems, window as words
from engine.types import Problem

_ICON = 16  # size of the warning sign at the usual size of text, in px


class Notice(QFrame):
    """A card that shows a problem. It stays until the user closes it or its owner hides it."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("notice")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._theme = theme
        self._icon = QLabel(self)
        self._title = Sentences(self)
        self._title.setProperty("role", "title")
        self._cause = Sentences(self)
        self._advice = Sentences(self)
        self._advice.setProperty("tone", "secondary")
        self._log = Details(self)
        self.button = Button("", self)
        self.details_button = Button(problems.DETAILS, self)
        self.copy_button = CopyButton(problems.COPY_DETAILS, self)
        self.close_button = IconButton(theme, Icon.CLOSE, words.CLOSE, self)
        # action of the button; None after the action has run
        self._act: Callable[[], object] | None = None
        self.problem: Problem | None = None  # problem that was shown last
        self._build()
        self._connect()
        self._tint()
        self.hide()

    @property
    def text(self) -> str:
        return " ".join(one.text() for one in (self._title, self._cause, self._advice))

    @property
    def details(self) -> str:
        """The text of the details if it is visible, else an empty string."""
        return self._log.text if self._log.isVisible() else ""

    def say(self, problem: Problem) -> None:
        """Show the problem without a button."""
        self.button.hide()
        self._present(problem)

    def offer(self, problem: Problem, word: str, act: Callable[[], object]) -> None:
        """Show the problem with a button labelled `word` that calls `act`."""
        self._act = act
        self.button.setText(word)
        self.button.show()
        self._present(problem)

    def _build(self) -> None:
        for button in (self.details_button, self.copy_button):
            button.setProperty("kind", "plain")
        self.details_button.setCheckable(True)
        buttons = QHBoxLayout()
        buttons.setContentsMargins(0, Space.S, 0, 0)
        buttons.setSpacing(Space.XS)
        for button in (self.button, self.details_button, self.copy_button):
            buttons.addWidget(button)
        buttons.addStretch(1)
        texts = QVBoxLayout()
        texts.setContentsMargins(0, Space.XS, 0, Space.L)
        texts.setSpacing(Space.XS)
        for label in (self._title, self._cause, self._advice):
            texts.addWidget(label)
        texts.addLayout(buttons)
        texts.addWidget(self._log)
        for label in (self._title, self._cause, self._advice):
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(Space.L, Space.M, Space.S, 0)
        layout.setSpacing(Space.S)
        self._icon.setContentsMargins(0, Space.XS, 0, 0)
        layout.addWidget(self._icon, 0, Qt.AlignmentFlag.AlignTop)
        layout.addLayout(texts, 1)
        layout.addWidget(self.close_button, 0, Qt.AlignmentFlag.AlignTop)

    def _connect(self) -> None:
        self.button.clicked.connect(self._on_clicked)
        self.close_button.clicked.connect(self.hide)
        self.details_button.toggled.connect(self._show_details)
        self._theme.changed.connect(self._tint)
        self._theme.zoomed.connect(self._tint)

    def _present(self, problem: Problem) -> None:
        self.problem = problem
        self._title.setText(problem.title)
        for label, text in ((self._cause, problem.cause), (self._advice, problem.advice)):
            label.setText(text)
            label.setVisible(bool(text))
        self._log.set_text(problem.details)
        self.copy_button.copied_text = problem.details
        self.details_button.setVisible(bool(problem.details))
        self.details_button.setChecked(False)
        self._show_details(False)
        self.setAccessibleName(str(problem))
        self.show()
        announce(self, str(problem))

    def _show_details(self, shown: bool) -> None:  # noqa: FBT001 (slot)
        self._log.setVisible(shown)
        self.copy_button.setVisible(shown)
        self._tint()

    def _tint(self) -> None:
        icons, ink = self._theme.icons, self._theme.colors.error.ink
        is_open = self.details_button.isChecked()
        chevron = Icon.CHEVRON_DOWN_SMALL if is_open else Icon.CHEVRON_RIGHT_SMALL
        size = round(_ICON * max(1.0, self._theme.zoom))
        self._icon.setPixmap(icons.icon(Icon.WARNING, ink).pixmap(QSize(size, size)))
        self.details_button.setIcon(icons.icon(chevron, ink))

    def _on_clicked(self) -> None:
        act, self._act = self._act, None
        self.hide()
        if act is not None:
            act()
