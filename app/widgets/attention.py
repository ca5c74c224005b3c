"""Notifications of answers that finish out of sight: a toast, a Dock bounce and a Dock badge."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication, QWidget
from typing_extensions import override

from app.controllers.library import LibraryController
from app.controllers.turns import Turns
from app.store.conversations import ConversationSummary
from app.words import window as words

# A function that shows a toast. Arguments: a sentence, the label of the button, the action of the
# button.
Offer = Callable[[str, str, Callable[[], object]], None]


class Attention(QObject):
    """The notifier of finished answers, owned by the window.

    A finished answer bounces the Dock icon while the window is inactive. If the answer's
    conversation is not shown, a toast appears too. The Dock badge counts the answer until its
    conversation is shown.
    """

    def __init__(
        self, window: QWidget, turns: Turns, library: LibraryController, offer: Offer
    ) -> None:
        super().__init__(window)
        self._window = window
        self._library = library
        self._offer = offer
        self._num_unseen = 0
        turns.answered.connect(self._on_answered)
        library.unseen.finished.connect(self._on_finished_unseen)
        library.list_changed.connect(self._count)
        window.installEventFilter(self)

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Note that the window was closed or opened. Minimising sends a spontaneous event."""
        if event.type() in (QEvent.Type.Show, QEvent.Type.Hide) and not event.spontaneous():
            self._library.unseen.set_window_open(event.type() is QEvent.Type.Show)
        return super().eventFilter(watched, event)

    def _on_answered(self) -> None:
        if not self._window.isActiveWindow():
            QApplication.alert(self._window)

    def _on_finished_unseen(self, summary: ConversationSummary) -> None:
        self._offer(
            words.has_finished(summary.title),
            words.OPEN,
            lambda: self._library.select(summary.conversation_id),
        )

    def _count(self) -> None:
        """Set the Dock badge to the number of conversations with an unseen answer."""
        num_unseen = len(self._library.unseen.ids)
        app = QGuiApplication.instance()
        if num_unseen != self._num_unseen and isinstance(app, QGuiApplication):
            self._num_unseen = num_unseen
            app.setBadgeNumber(num_unseen)
