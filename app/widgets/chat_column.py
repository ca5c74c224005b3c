"""The heights of the parts of the chat pane, one below the other. Main thread."""

from __future__ import annotations

from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.theme.tokens import Size, Space
from app.widgets.card_stack import CardStack, centred
from app.widgets.composer import Composer
from app.widgets.empty_chat import EmptyChat
from app.widgets.empty_state import give_room, taken_height

# vertical centre of the composer in an empty chat, as a fraction of the window's height
EMPTY_PLACE = 0.4

# largest share of the pane's height for the attached files, which scroll
FILES_SHARE = 1 / 3

# largest share of the height above the composer for the cards, if the transcript is on show: the
# texts and the buttons of a problem are worth more there than the transcript
CARDS_SHARE = 6 / 7


class ChatColumn(QVBoxLayout):
    """The column of the chat pane. The pane calls `fit` when its size or that of a part changes.

    find_bar, view, cards, composer: parts that an empty chat has too, from top to bottom.
    """

    def __init__(
        self,
        pane: QWidget,
        empty: EmptyChat,
        find_bar: QWidget,
        view: QWidget,
        cards: CardStack,
        composer: Composer,
    ) -> None:
        super().__init__(pane)
        self._pane = pane
        self._empty = empty
        self._view = view
        self._cards = cards
        self._composer = composer
        self.setContentsMargins(0, 0, 0, 0)
        self.setSpacing(0)
        self.addWidget(empty.above)
        self.addWidget(empty.heading)
        self.addWidget(find_bar)
        self.addWidget(view, 1)
        # In a low window the transcript makes room, so that the texts of a notice are whole.
        view.setMinimumHeight(Size.CONTROL)
        self.addWidget(cards)
        self.addWidget(composer)
        self.addLayout(centred(empty.documents))
        self.addLayout(centred(empty.promise, below=Space.L))
        self.addLayout(centred(empty.model_note))
        self.addWidget(empty.recent, 1)
        cards.changed.connect(self.fit_cards)

    def fit(self) -> None:
        self.fit_cards()
        self.place_composer()

    def place_composer(self) -> None:
        """Resize the spacer so that the composer of an empty chat is centred at EMPTY_PLACE.

        In a low window the composer is higher, so that the parts below it are whole.
        """
        above = self._empty.above
        if above.isHidden():
            return
        window, box = self._pane.window(), self._composer.box
        wanted = round(window.height() * EMPTY_PLACE)
        is_at = box.mapTo(window, box.rect().center()).y()
        least = self.totalMinimumHeightForWidth(self._pane.width())
        room = self._pane.height() - least + above.minimumHeight()
        above.setFixedHeight(max(0, min(above.height() + wanted - is_at, room)))
        self.activate()

    def fit_cards(self) -> None:
        """Let the cards scroll rather than squeeze the composer or the transcript in a low window.

        In an empty chat the space above the heading, the heading and the promise give way first.
        """
        pane, cards, empty = self._pane, self._cards, self._empty
        self._composer.files.set_room(round(pane.height() * FILES_SHARE))
        others = self.totalMinimumHeightForWidth(pane.width()) - cards.minimumHeight()
        if not empty.above.isHidden():
            others -= empty.above.minimumHeight()
        others -= taken_height(empty.heading) + taken_height(empty.promise)
        room = pane.height() - others
        if not self._view.isHidden():
            height = room + self._view.minimumHeight()
            room = round(height * CARDS_SHARE)
        left = give_room((empty.promise, empty.heading), room - cards.wanted())
        if cards.fit(left + cards.wanted()):
            self.activate()
