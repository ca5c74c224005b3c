"""The confirmation before the app quits."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QApplication, QWidget

from app.widgets.message_sheet import MessageSheet
from app.words import dialogs as words


class QuitGuard(QObject):
    """The guard that asks for confirmation before the app quits, if there is a reason for it.

    Quitting does not lose the part of an answer that is already written. A message whose answer has
    not begun returns to the composer. Quitting loses the changes to a message that is being edited.
    """

    accepted = Signal()  # the user has confirmed

    def __init__(
        self,
        window: QWidget,
        num_writing: Callable[[], int],
        num_waiting: Callable[[], int],
        num_for_programs: Callable[[], int],
        edited_titles: Callable[[], list[str]],
        asks_always: Callable[[], bool],
    ) -> None:
        super().__init__(window)
        self._window = window
        self._num_writing = num_writing
        self._num_waiting = num_waiting
        self._num_for_programs = num_for_programs
        self._edited_titles = edited_titles
        self._asks_always = asks_always
        self._box: MessageSheet | None = None
        self._is_certain = False  # True after the user has confirmed

    def quit(self) -> None:
        if self.may_quit():
            QApplication.quit()

    def may_quit(self) -> bool:
        """Return True if the app may quit now.

        If answers are being written or have not begun, or messages are being edited, or the
        settings want it, return False and ask the user. The app quits when the user accepts.
        """
        is_asked = self._is_answering or self._edited_titles() or self._asks_always()
        may_quit = self._is_certain or not is_asked
        if not may_quit and self._box is None:
            self._ask()
        return may_quit

    @property
    def _is_answering(self) -> bool:
        """True if answers are being written or have not begun, also for other programs."""
        return bool(self._num_writing() or self._num_waiting() or self._num_for_programs())

    def _ask(self) -> None:
        num_writing, num_waiting = self._num_writing(), self._num_waiting()
        num_for_programs = self._num_for_programs()
        edited = self._edited_titles()
        reasons = (
            (num_writing > 0, words.answers_writing(num_writing), words.QUIT_KEEPS),
            (num_waiting > 0, words.answers_waiting(num_waiting), words.QUIT_RETURNS),
            (
                num_for_programs > 0,
                words.answers_for_programs(num_for_programs),
                words.PROGRAM_IS_TOLD,
            ),
            (bool(edited), words.edits_unsaved(edited), words.EDIT_LOST),
            (not (self._is_answering or edited), words.ALL_SAVED, ""),
        )
        box = self._box = MessageSheet(
            words.QUIT_QUESTION,
            " ".join(text for holds, text, _effect in reasons if holds),
            " ".join(effect for holds, _text, effect in reasons if holds and effect),
            self._window,
        )
        cancel_button = box.add_button(words.CANCEL, is_default=bool(edited))
        quit_button = box.add_button(words.QUIT, is_default=not edited)
        cancel_button.clicked.connect(box.reject)
        quit_button.clicked.connect(box.accept)
        box.accepted.connect(self._on_accepted)
        box.finished.connect(self._on_finished)
        box.open()

    def _on_accepted(self) -> None:
        self._is_certain = True
        self.accepted.emit()
        QApplication.quit()

    def _on_finished(self) -> None:
        self._box = None
