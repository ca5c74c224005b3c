"""The notice that the chats cannot be opened, with a button that tries again. Main thread."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from app.controllers.core import Core
from app.widgets.composer import Composer
from app.widgets.notice import Notice
from app.words import hub as words
from engine.problem import Problem


class LostStore(QObject):
    """Shows the pane's notice, and disables the composer until the store is open."""

    changed = Signal()  # emitted when the composer has been disabled or enabled

    def __init__(self, core: Core, notice: Notice, composer: Composer, parent: QObject) -> None:
        super().__init__(parent)
        self._core = core
        self._notice = notice
        self._composer = composer
        core.store.unavailable.connect(self._on_unavailable)
        core.store.opened.connect(self._on_opened)

    def _on_unavailable(self, problem: Problem) -> None:
        self._notice.offer(problem, words.ASK_AGAIN, self._core.open_chats)
        self._notice.close_button.hide()  # without the notice nothing tells why Send is disabled
        self._composer.setEnabled(False)
        self.changed.emit()

    def _on_opened(self) -> None:
        if not self._composer.isEnabled():  # the notice has been shown
            self._notice.close_button.show()
        self._composer.setEnabled(True)
        self.changed.emit()
