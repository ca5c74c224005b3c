"""The line above the composer if its message was not sent because the app ended. Main thread."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtWidgets import QWidget

from app.controllers.core import Core
from app.widgets.choice_line import ChoiceLine
from app.words import composer as words, promise


class UnsentNote(ChoiceLine):
    """The reason why a message is in the composer again.

    The line stays until the message is sent or removed, or the user closes the line.
    """

    def __init__(self, core: Core, parent: QWidget) -> None:
        super().__init__(parent)
        self._core = core
        self.set_choices((promise.CLOSE, self._end))
        core.library.current_changed.connect(self._refresh)
        core.desk.changed.connect(self._refresh)
        self._refresh()

    def _refresh(self) -> None:
        conversation = self._core.desk.get(self._core.library.current)
        self.show_text(words.NOT_SENT_BEFORE_END if conversation.draft_was_sent else "")

    def _end(self) -> None:
        desk = self._core.desk
        desk.save(replace(desk.get(self._core.library.current), draft_was_sent=False))
