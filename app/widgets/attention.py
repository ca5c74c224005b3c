"""Notifications of answers that finish out of sight: a toast, a Dock bounce and a Dock badge."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QEvent, QObject
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication, QWidget
from typing_extensions import override

from app.controllers.library import LibraryController
from app.controllers.turns import Turns
from app.store.conversations import ConversationSummary
from app.widgets.toast import Toast
from app.words import window as words
from engine.types import ConversationId


class Attention(QObject):
    """The notifier of finished answers, owned by the window.

    A finished answer bounces the Dock icon while the window is inactive. If the answer's
    conversation is not shown, a toast appears too, until the answer is seen. The Dock badge counts
    the answer until its conversation is shown.
    """

    def __init__(
        self, window: QWidget, turns: Turns, library: LibraryController, toast: Toast
    ) -> None:
        super().__init__(window)
        self._window = window
        self._library = library
        self._toast = toast
        # The chats with a toast that is not withdrawn, each with the action of its button
        self._offered: dict[ConversationId, partial[None]] = {}
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
        chat = summary.conversation_id
        act = self._offered.setdefault(chat, partial(self._library.select, chat))
        self._toast.offer(words.has_finished(summary.title), words.OPEN, act)

    def _withdraw_seen(self) -> None:
        """Withdraw the toasts of answers that the user has seen, or whose chat is deleted."""
        for chat in self._offered.keys() - self._library.unseen.ids:
            self._toast.withdraw(self._offered.pop(chat))

    def _count(self) -> None:
        """Set the Dock badge to the number of conversations with an unseen answer."""
        self._withdraw_seen()
        num_unseen = len(self._library.unseen.ids)
        app = QGuiApplication.instance()
        if num_unseen != self._num_unseen and isinstance(app, QGuiApplication):
            self._num_unseen = num_unseen
            app.setBadgeNumber(num_unseen)
