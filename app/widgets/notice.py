"""The card above the composer that reports a problem: what happened, why, and what to do.

The transcript paints the same card for a failed answer.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QVBoxLayout, QWidget
from typing_extensions import override

from app.theme.icons import GRID, Icon
from app.theme.palette import Theme
from app.theme.tokens import Space
from app.widgets.announcer import announce
from app.widgets.button import Button
from app.widgets.button_row import ButtonRow, Label
from app.widgets.copy_button import CopyButton
from app.widgets.details import Details
from app.widgets.icon_button import IconButton
from app.widgets.line_height import Sentences
from app.words import problems, window as words
from engine.problem import Problem

_ICON = 16  # size of the warning sign at the usual size of text, in px


class Notice(QFrame):
    """A card that shows a problem. It stays until the user closes it or its owner hides it.

    Its labels and buttons are created for the first problem. Most windows never show one.
    """

    built = Signal()  # emitted when the labels and buttons have been created

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("notice")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._theme = theme
        self._sentences: tuple[Sentences, ...] = ()  # empty before the first problem
        self._acts: dict[Button, Callable[[], object]] = {}  # actions of the buttons on show
        self.problem: Problem | None = None  # problem that was shown last
        self.hide()

    def _build(self) -> None:
        self._icon = QLabel(self)
        self._title = Sentences(self)
        self._title.setProperty("role", "title")
        self._cause = Sentences(self)
        self._advice = Sentences(self)
        self._advice.setProperty("tone", "secondary")
        self._sentences = (self._title, self._cause, self._advice)
        self._log = Details(self)
        self.button = Button("", self)
        self.other_button = Button("", self)
        self.details_button = Button(problems.DETAILS, self)
        self.copy_button = CopyButton(problems.COPY_DETAILS, self)
        self._texts = QVBoxLayout()
        self._row = ButtonRow(self.button, self.other_button, self.details_button, self.copy_button)
        self.close_button = IconButton(self._theme, Icon.CLOSE, words.CLOSE, self)
        self._lay_out()
        self._connect()
        self._tint()
        self.built.emit()

    @property
    def text(self) -> str:
        return " ".join(one.text() for one in self._sentences)

    @property
    def details(self) -> str:
        """The text of the details if it is visible, else an empty string."""
        return self._log.text if self._log.isVisible() else ""

    def say(self, problem: Problem) -> None:
        """Show the problem without a button."""
        self._acts.clear()
        self._present(problem)

    def offer(self, problem: Problem, word: str, act: Callable[[], object]) -> None:
        """Show the problem with a button labelled `word` that calls `act`."""
        self.say(problem)
        self._add(self.button, Label(word), act)

    def change_cause(self, problem: Problem) -> None:
        """Replace the problem on show by one of the same kind. Its buttons and choices stay."""
        self.problem = problem
        self._cause.setText(problem.cause)
        self.setAccessibleName(str(problem))

    def put_buttons_first(self, *, first: bool) -> None:
        """Put the buttons directly below the title, or below all sentences.

        In a low window the sentences scroll, and the buttons would be out of view.
        """
        place = 1 if first else len(self._sentences)
        if self._sentences and self._texts.indexOf(self._row) != place:
            self._texts.removeItem(self._row)
            self._texts.insertLayout(place, self._row)

    def add_choice(self, sentence: str, label: Label, act: Callable[[], object]) -> None:
        """Add a sentence and a button to the problem on show."""
        self._advice.setText(f"{self._advice.text()} {sentence}".strip())
        self._advice.show()
        announce(self, sentence)
        self._add(self.other_button, label, act)

    def _lay_out(self) -> None:
        for button in (self.details_button, self.copy_button):
            button.setProperty("kind", "plain")
        self.details_button.setCheckable(True)
        self._row.setContentsMargins(0, Space.S, 0, 0)
        texts = self._texts
        texts.setContentsMargins(0, Space.XS, 0, Space.L)
        texts.setSpacing(Space.XS)
        for label in self._sentences:
            texts.addWidget(label)
        texts.addLayout(self._row)
        texts.addWidget(self._log)
        for label in self._sentences:
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(Space.L, Space.M, Space.S, 0)
        layout.setSpacing(Space.S)
        self._icon.setContentsMargins(0, Space.XS, 0, 0)
        layout.addWidget(self._icon, 0, Qt.AlignmentFlag.AlignTop)
        layout.addLayout(texts, 1)
        layout.addWidget(self.close_button, 0, Qt.AlignmentFlag.AlignTop)

    def _connect(self) -> None:
        for button in (self.button, self.other_button):
            button.clicked.connect(partial(self._on_clicked, button))
        self.close_button.clicked.connect(self.hide)
        self.details_button.toggled.connect(self._show_details)
        self._theme.changed.connect(self._tint)
        self._theme.zoomed.connect(self._tint)

    def _present(self, problem: Problem) -> None:
        if not self._sentences:
            self._build()
        self.problem = problem
        for button in (self.button, self.other_button):
            button.setVisible(button in self._acts)
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
        size, small = self._theme.scaled(GRID), self._theme.scaled(_ICON)
        self._icon.setPixmap(icons.icon(Icon.WARNING, ink, size=small).pixmap(small, small))
        self.details_button.setIconSize(QSize(size, size))
        self.details_button.setIcon(icons.icon(chevron, ink, size=size))

    def _add(self, button: Button, label: Label, act: Callable[[], object]) -> None:
        self._acts[button] = act
        self._row.set_label(button, label)
        self._row.fit(self._texts.geometry().width())

    def _on_clicked(self, button: Button) -> None:
        acts, self._acts = self._acts, {}
        self.hide()
        if button in acts:
            acts[button]()

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self._sentences:
            self._row.fit(self._texts.geometry().width())
