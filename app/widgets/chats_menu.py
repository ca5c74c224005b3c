"""The first conversations at the end of the Window menu, with the keys 1 to 9. Main thread."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QObject
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QMenu

from app.controllers.library import LibraryController
from app.controllers.organising import Organiser
from app.words import window as words

NUM_CHATS = 9
TITLE_LEN = 40  # maximum number of characters of a title in the menu


class ChatsMenu(QObject):
    """One action for each of the first conversations, in the order of the sidebar.

    The conversation on show has a tick. Ctrl and the number of its place (⌘ on a Mac) shows a
    conversation. While there are fewer chats, the menu has fewer of the actions.
    """

    def __init__(self, menu: QMenu, library: LibraryController, organiser: Organiser) -> None:
        super().__init__(menu)
        self._organiser = organiser
        self._menu = menu
        self._library = library
        self._separator = menu.addSeparator()
        self._actions = [self._make(place) for place in range(NUM_CHATS)]
        organiser.changed.connect(self._refresh)
        self._refresh()

    def _make(self, place: int) -> QAction:
        action = QAction(self)
        action.setCheckable(True)
        action.setShortcut(QKeySequence(f"Ctrl+{place + 1}"))
        action.triggered.connect(partial(self._choose, place))
        return action

    def _choose(self, place: int) -> None:
        self._library.select(self._organiser.arrangement.in_order[place].conversation_id)
        self._refresh()  # a click has changed the tick, also if the chat is on show already

    def _refresh(self) -> None:
        summaries = self._organiser.arrangement.in_order[:NUM_CHATS]
        self._separator.setVisible(bool(summaries))
        for place, action in enumerate(self._actions):
            summary = summaries[place] if place < len(summaries) else None
            if summary is None:
                self._menu.removeAction(action)
            else:
                action.setText(words.in_menu(summary.title, TITLE_LEN))
                action.setChecked(summary.conversation_id == self._library.current)
                if action not in self._menu.actions():
                    self._menu.addAction(action)
