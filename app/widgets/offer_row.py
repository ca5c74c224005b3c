"""A row of the Models window: texts at the left, state and buttons at the right. Main thread."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import (
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QProgressBar,
    QVBoxLayout,
    QWidget,
)

from app.theme.tokens import Size, Space
from app.viewmodels.offer import COPY_BITS, Offer, OfferAction
from app.widgets.button import Button
from app.widgets.line_height import Sentences
from app.widgets.menu import Menu
from app.words import hub as words

_TEXTS: Mapping[OfferAction, str] = {
    OfferAction.SHOW: words.DETAILS,
    OfferAction.ASK_AGAIN: words.ASK_AGAIN,
    OfferAction.DOWNLOAD: words.DOWNLOAD,
    OfferAction.CHOOSE_FILE: words.CHOOSE_FILE,
    OfferAction.PAUSE: words.PAUSE,
    OfferAction.RESUME: words.RESUME,
    OfferAction.TRY_NOW: words.TRY_NOW,
    OfferAction.CANCEL: words.CANCEL,
    OfferAction.USE: words.USE,
    OfferAction.UNLOAD: words.UNLOAD,
    OfferAction.DEFAULTS: words.DEFAULTS,
    **{action: words.make_copy(bits) for action, bits in COPY_BITS.items()},
    OfferAction.CANCEL_COPY: words.CANCEL,
    OfferAction.REVEAL: words.REVEAL,
    OfferAction.REMOVE: words.REMOVE,
}
# Actions of a download that is not complete.
_GOES_ON = frozenset({OfferAction.PAUSE, OfferAction.RESUME, OfferAction.TRY_NOW})
_STEPS = 1_000  # resolution of the progress bar


class OfferRow(QFrame):
    """A row of one model or download."""

    chosen = Signal(object, str, str)  # arguments: OfferAction, key of the row, path of a GGUF file

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("offer")
        self._shown: Offer | None = None
        self.buttons: dict[OfferAction, Button] = {}
        self.more: Button | None = None  # the button of the menu with further actions
        self.entries: dict[OfferAction, QAction] = {}  # the entries of that menu
        self.title = QLabel(self)
        self.title.setProperty("type", "title")
        self.title.setTextFormat(Qt.TextFormat.PlainText)
        self.title.setMinimumWidth(1)
        self.description = Sentences(self, "small")
        self.sentence = Sentences(self, "small")
        for label in (self.description, self.sentence):
            label.setProperty("tone", "secondary")
        self.state = QLabel(self)
        self.state.setProperty("type", "small")
        self.state.setProperty("tone", "secondary")
        self.bar = QProgressBar(self)
        self.bar.setRange(0, _STEPS)
        self.bar.setTextVisible(False)
        self._buttons = QHBoxLayout()
        self._buttons.setSpacing(Space.S)
        self._buttons.addStretch()  # a long state does not widen the buttons below it
        self._build()

    @property
    def key(self) -> str:
        """The key of the offer on show."""
        return "" if self._shown is None else self._shown.key

    def show_offer(self, offer: Offer) -> None:
        """Show an offer. The buttons are made again only if the actions have changed."""
        if offer == self._shown:
            return
        old, self._shown = self._shown, offer
        self.title.setText(offer.title)
        self._dim_title(is_dim=not offer.is_usable)
        self.title.setToolTip(offer.key)
        self.description.setText(offer.description)
        self.description.setVisible(bool(offer.description))
        self.sentence.setText(offer.sentence)
        self.sentence.setVisible(bool(offer.sentence))
        self.state.setText(offer.state)
        self.state.setVisible(bool(offer.state))
        self.bar.setVisible(offer.fraction is not None)
        self.bar.setValue(round((offer.fraction or 0.0) * _STEPS))
        self.bar.setAccessibleName(offer.title)
        self.setAccessibleName(words.joined(offer.title, offer.description, offer.state))
        if old is None or _buttons_of(old) != _buttons_of(offer):
            self._make_buttons(offer)

    def _dim_title(self, *, is_dim: bool) -> None:
        self.title.setProperty("tone", "secondary" if is_dim else None)
        self.style().unpolish(self.title)
        self.style().polish(self.title)

    def _build(self) -> None:
        right = QVBoxLayout()
        right.setSpacing(Space.XS)
        right.addWidget(self.state, 0, Qt.AlignmentFlag.AlignRight)
        right.addLayout(self._buttons)
        right.addStretch()
        grid = QGridLayout(self)
        grid.setContentsMargins(Space.L, Space.M, Space.L, Space.M)
        grid.setHorizontalSpacing(Space.L)
        grid.setVerticalSpacing(Space.HAIR)
        grid.setColumnStretch(0, 1)
        for number, part in enumerate((self.title, self.description, self.sentence, self.bar)):
            grid.addWidget(part, number, 0)
        grid.addLayout(right, 0, 1, 4, 1, Qt.AlignmentFlag.AlignTop)

    def _make_buttons(self, offer: Offer) -> None:
        had_focus = any(button.hasFocus() for button in self.buttons.values())
        for button in (*self.buttons.values(), *((self.more,) if self.more else ())):
            button.setParent(None)
            button.deleteLater()
        self.buttons, self.more, self.entries = {}, None, {}
        for action in offer.actions:
            text = _TEXTS[action]
            if action is OfferAction.CANCEL and not _GOES_ON.intersection(offer.actions):
                text = words.CLEAR
            button = Button(text, self)
            button.setAccessibleName(words.action_on(text, offer.title))
            button.setMinimumWidth(2 * Size.CONTROL)
            if action is OfferAction.CHOOSE_FILE:
                button.setMenu(self._menu(offer, button))
            else:
                button.clicked.connect(partial(self._choose, action))
            self._buttons.addWidget(button)
            self.buttons[action] = button
        if offer.more:
            self._add_more(offer)
        if had_focus and self.buttons:
            next(iter(self.buttons.values())).setFocus()

    def _add_more(self, offer: Offer) -> None:
        self.more = Button(words.MORE, self)
        self.more.setAccessibleName(words.action_on(words.MORE, offer.title))
        menu = Menu(self.more)
        for action in offer.more:
            self.entries[action] = entry = menu.addAction(_TEXTS[action])
            entry.triggered.connect(partial(self._choose, action))
        if offer.keeps:
            remove = self.entries[OfferAction.REMOVE]
            remove.setText(words.kept(words.REMOVE, offer.keeps))
            remove.setEnabled(False)
        self.more.setMenu(menu)
        self._buttons.addWidget(self.more)

    def _menu(self, offer: Offer, button: Button) -> Menu:
        menu = Menu(button)
        for path, text in offer.choices:
            menu.addAction(text).triggered.connect(
                partial(self._choose, OfferAction.CHOOSE_FILE, path)
            )
        return menu

    def _choose(self, action: OfferAction, path: object = "", *_: object) -> None:
        assert self._shown is not None
        self.chosen.emit(action, self._shown.key, path if isinstance(path, str) else "")


def _buttons_of(offer: Offer) -> tuple[object, ...]:
    return offer.actions, offer.more, offer.choices, offer.keeps
