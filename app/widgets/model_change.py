"""The question before a change of the model cuts off answers. Main thread."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QApplication, QWidget

from app.controllers.core import Core
from app.widgets.message_sheet import MessageSheet
from app.words import dialogs, hub, models as words


class ModelChange(QObject):
    """Asks before another model is loaded, or the model unloaded, while answers are written.

    The sheet opens on the window in front, which may be the Models window.
    """

    def __init__(self, core: Core, window: QWidget) -> None:
        super().__init__(window)
        self._turns = core.turns
        self._window = window
        self._sheet: MessageSheet | None = None
        core.models.confirm = self._confirm

    def _confirm(self, name: str, act: Callable[[], None]) -> None:
        """Call `act` now if no answer is cut off, else when the user agrees.

        name: the model that is loaded; empty if the model in use is unloaded.
        """
        count = self._turns.num_writing
        if not count:
            act()
        elif self._sheet is None:
            self._ask(name, count, act)

    def _ask(self, name: str, count: int, act: Callable[[], None]) -> None:
        question = words.use_now(name) if name else words.UNLOAD_QUESTION
        text = dialogs.answers_writing(count)
        sheet = MessageSheet(question, text, words.stops_answers(count), self._front())
        self._sheet = sheet
        cancel_button = sheet.add_button(dialogs.CANCEL)
        act_button = sheet.add_button(words.USE_NOW if name else hub.UNLOAD, is_default=True)
        cancel_button.clicked.connect(sheet.reject)
        act_button.clicked.connect(sheet.accept)
        sheet.finished.connect(self._on_finished)
        sheet.accepted.connect(act)
        sheet.open()

    def _front(self) -> QWidget:
        """Return the active window of the app, or the main window."""
        return QApplication.activeWindow() or self._window

    def _on_finished(self) -> None:
        self._sheet = None
