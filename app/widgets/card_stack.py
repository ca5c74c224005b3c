"""The cards and lines above the composer, which scroll in a window that is too low for them."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import QEvent, QObject, QSize, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget
from typing_extensions import override

from app.theme.tokens import Size, Space
from app.widgets.choice_line import ChoiceLine
from app.widgets.notice import Notice
from app.widgets.scroller import VerticalScroller


class CardStack(VerticalScroller):
    """A view of the cards. It is as high as they are, if there is room."""

    changed = Signal()  # emitted when the height of the cards may have changed
    filled = Signal()  # emitted when a card has created its buttons
    left = Signal()  # emitted when a card hides that had the focus

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.content = QWidget(self.viewport())  # the parent of the cards
        self._column = QVBoxLayout(self.content)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(0)
        self._rows: list[QHBoxLayout] = []
        self._cards: list[QWidget] = []
        self._notices: list[Notice] = []
        self._beside = 0  # width that the scroll bar takes from the margin
        self.setWidget(self.content)
        self.setObjectName("cards")
        self.viewport().setAutoFillBackground(False)

    def show_cards(self, cards: Iterable[QWidget]) -> None:
        """Lay out the cards, which are children of `content`."""
        for card in cards:
            row = centred(card)
            self._rows.append(row)
            self._cards.append(card)
            self._column.addLayout(row)
            card.installEventFilter(self)
            if isinstance(card, Notice):
                self._notices.append(card)
            if isinstance(card, (Notice, ChoiceLine)):
                card.built.connect(self.filled)

    @override
    def eventFilter(self, arg__1: QObject, arg__2: QEvent) -> bool:
        """Note changes of the cards. QScrollArea has installed the filter on `content`."""
        done = super().eventFilter(arg__1, arg__2)
        if arg__2.type() is QEvent.Type.LayoutRequest and arg__1 is self.content:
            self.updateGeometry()
            self.changed.emit()
        elif arg__2.type() is QEvent.Type.Resize and arg__1 is self.content:
            self._keep_focus_in_view()
        elif arg__2.type() is QEvent.Type.Hide and not arg__2.spontaneous():
            self._note_hidden(arg__1)
        return done

    @override
    def resizeEvent(self, arg__1: QResizeEvent) -> None:
        super().resizeEvent(arg__1)
        self._keep_focus_in_view()

    def _keep_focus_in_view(self) -> None:
        """Scroll to the button with the focus: a longer sentence may have moved it out of view."""
        focused = self.window().focusWidget()
        if self.content.isAncestorOf(focused):
            self.ensureWidgetVisible(focused)

    def _note_hidden(self, card: QObject) -> None:
        """Report a card that hides with the focus, which Qt would give to the next button."""
        if isinstance(card, QWidget) and card.isAncestorOf(self.window().focusWidget()):
            self.left.emit()

    @override
    def minimumSizeHint(self) -> QSize:
        """The least width of the cards: their buttons are never cut."""
        return QSize(self.content.minimumSizeHint().width(), 0)

    def wanted(self) -> int:
        """Return the height of the cards on show, with a gap between them and the text above."""
        column = self._column
        has_any = any(not card.isHidden() for card in self._cards)
        column.setContentsMargins(0, Space.S if has_any else 0, 0, 0)
        column.activate()
        # totalHeightForWidth() is -1 if the height of no card on show depends on its width.
        if column.hasHeightForWidth():
            height = column.totalHeightForWidth(self.width() - self._beside)
        else:
            height = column.totalSizeHint().height()
        return height + sum(
            notice.hidden_height(self._card_width) for notice in self._notices_on_show
        )

    @property
    def _notices_on_show(self) -> list[Notice]:
        return [notice for notice in self._notices if not notice.isHidden()]

    @property
    def _card_width(self) -> int:
        return self.width() - 2 * Space.XL

    def fit(self, room: int) -> bool:
        """Take the height of the cards, but no more than `room`, and keep one line of text.

        If the cards must be lower, the texts of a notice scroll first, above its buttons. Return
        True if the height has changed.
        """
        wanted, most = self.wanted(), max(room, Size.CONTROL)
        for notice in self._notices_on_show:
            wanted -= notice.shrink(wanted - most, self._card_width)
        height = min(wanted, most)
        # The scroll bar stands in the margin, so it takes no width from the cards.
        self._beside = self.bar.sizeHint().width() if height < wanted else 0
        for row in self._rows:
            row.setContentsMargins(Space.XL, 0, Space.XL - self._beside, 0)
        if height == self.maximumHeight():
            return False
        self.setFixedHeight(height)
        return True


def centred(card: QWidget, *, below: int = 0) -> QHBoxLayout:
    """Return a row with a card in the middle."""
    row = QHBoxLayout()
    row.setContentsMargins(Space.XL, 0, Space.XL, below)
    row.addWidget(card)
    return row
