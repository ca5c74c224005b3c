"""The line above the composer after the first return to a chat. Main thread."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from app.controllers.core import Core
from app.theme.palette import Theme
from app.widgets.choice_line import ChoiceLine
from app.widgets.remembering import show_remembering
from app.words import promise as words


class ReturnNote(ChoiceLine):
    """The restored tokens, and the time that reading them would have taken.

    The line stays until the user closes it or leaves the chat.
    """

    def __init__(self, theme: Theme, core: Core, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._saved = core.time_saved
        core.first_return.noted.connect(self.show_text)
        core.library.current_changed.connect(self._end)
        self.set_choices((words.HOW, self._explain), (words.CLOSE, self._end))

    def _explain(self) -> None:
        self._end()
        show_remembering(self._theme, self._saved, self.window())

    def _end(self) -> None:
        self.show_text("")
