"""The card above the composer that reports a problem: what happened, why, and what to do.

The transcript paints the same card for a failed answer.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QEvent, QSize, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from app.theme.icons import GRID, Icon
from app.theme.palette import Theme
from app.theme.tokens import Space, Type
from app.widgets.announcer import announce
from app.widgets.button import Button
from app.widgets.button_row import ButtonRow, Label
from app.widgets.copy_button import CopyButton
from app.widgets.details import Details
from app.widgets.focus_ring import FocusRing
from app.widgets.icon_button import IconButton
from app.widgets.line_height import Sentences, line_height
from app.widgets.scroller import VerticalScroller
from app.words import problems, window as words
from engine.problem import Problem

_UNLIMITED = 16_777_215  # QWIDGETSIZE_MAX
_LEAST_LINES = 2  # lines of the texts that a low window shows
_ICON = 16  # size of the warning sign at the usual size of text, in px


class _Body(VerticalScroller):
    """The sentences and details of a problem. In a low window they scroll, above the buttons."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.most = _UNLIMITED  # largest height in px; lower texts do not scroll
        self.content = QWidget(self.viewport())  # the parent of the texts
        self.column = QVBoxLayout(self.content)
        self.column.setSpacing(Space.XS)
        self.setWidget(self.content)
        for part in (self.viewport(), self.content):
            part.setAutoFillBackground(False)
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        FocusRing(theme, self)
        self._fit_bar()

    def hidden_height(self, width: int) -> int:
        return max(0, self._whole_height(width) - self.most)

    def shrink(self, by: int, width: int) -> int:
        """Scroll if `by` is above 0, and keep two lines. Return the px out of view."""
        whole = self._whole_height(width)
        least = min(whole, _LEAST_LINES * line_height(self, Type.UI))
        most = max(least, whole - by) if by > 0 else _UNLIMITED
        if most != self.most:
            self.most = most
            self._fit_bar()
            self.updateGeometry()
        return self.hidden_height(width)

    def _fit_bar(self) -> None:
        """Keep the width of the texts, with and without the bar."""
        scrolls, policy = self.most < _UNLIMITED, Qt.ScrollBarPolicy
        self.setVerticalScrollBarPolicy(
            policy.ScrollBarAlwaysOn if scrolls else policy.ScrollBarAlwaysOff
        )
        beside = 0 if scrolls else self.bar.sizeHint().width()
        self.column.setContentsMargins(0, 0, beside, 0)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus if scrolls else Qt.FocusPolicy.NoFocus)

    def _whole_height(self, width: int) -> int:
        scrolls = self.most < _UNLIMITED
        room = width - self.bar.sizeHint().width() if scrolls else width
        return max(0, self.column.totalHeightForWidth(room))

    @override
    def hasHeightForWidth(self) -> bool:
        return True

    @override
    def heightForWidth(self, arg__1: int) -> int:
        return min(self._whole_height(arg__1), self.most)

    @override
    def sizeHint(self) -> QSize:
        return QSize(self.column.sizeHint().width(), self.heightForWidth(self.width()))

    @override
    def minimumSizeHint(self) -> QSize:
        return QSize(self.column.minimumSize().width(), 0)

    @override
    def event(self, arg__1: QEvent) -> bool:
        if arg__1.type() is QEvent.Type.LayoutRequest:  # the texts have changed
            self.updateGeometry()
        return super().event(arg__1)


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
        self._body = _Body(self._theme, self)
        self._title = Sentences(self._body.content)
        self._title.setProperty("role", "title")
        self._cause = Sentences(self._body.content)
        self._advice = Sentences(self._body.content)
        self._advice.setProperty("tone", "secondary")
        self._sentences = (self._title, self._cause, self._advice)
        self._log = Details(self._body.content)
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

    def hidden_height(self, width: int) -> int:
        """Return the height of the texts that scroll out of view in a card of this width."""
        return self._body.hidden_height(self._body_width(width)) if self._sentences else 0

    def shrink(self, by: int, width: int) -> int:
        """Let the texts of a card of this width scroll, and not its buttons, to make it lower.

        Return the height in px by which it is lower, at most `by`.
        """
        if not self._sentences:
            return 0
        before = self._body.most
        hidden = self._body.shrink(by, self._body_width(width))
        if self._body.most != before:  # let the layouts forget the heights that they have cached
            self._layout.activate()
            self.updateGeometry()
        return hidden

    def _body_width(self, width: int) -> int:
        beside = self._icon.sizeHint().width() + self.close_button.minimumWidth()
        return width - beside - Space.L - 3 * Space.S

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
        self._row.setContentsMargins(0, Space.M, 0, 0)
        texts = self._texts
        texts.setContentsMargins(0, Space.XS, 0, Space.L)
        texts.setSpacing(0)
        for part in (*self._sentences, self._log):
            self._body.column.addWidget(part)
        texts.addWidget(self._body)
        texts.addLayout(self._row)
        for label in self._sentences:
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        layout = self._layout = QHBoxLayout(self)
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
