"""The confirmation before the app quits while answers are still being written."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Qt
from PySide6.QtWidgets import QApplication, QMessageBox, QWidget

from app.words import dialogs as words


class QuitGuard(QObject):
    """The guard that asks for confirmation before the app quits while answers are being written.

    Quitting does not lose the part of an answer that is already written.
    """

    def __init__(self, window: QWidget, num_writing: Callable[[], int]) -> None:
        super().__init__(window)
        self._window = window
        self._num_writing = num_writing
        self._box: QMessageBox | None = None
        self._is_certain = False  # True after the user has confirmed

    def quit(self) -> None:
        if self.may_quit():
            QApplication.quit()

    def may_quit(self) -> bool:
        """Return True if the app may quit now.

        If answers are being written, return False and ask the user. The app quits when the user
        accepts.
        """
        num_writing = 0 if self._is_certain else self._num_writing()
        if num_writing and self._box is None:
            self._ask(num_writing)
        return num_writing == 0

    def _ask(self, num_writing: int) -> None:
        box = self._box = QMessageBox(self._window)
        box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        box.setIcon(QMessageBox.Icon.Question)
        box.setWindowTitle(words.QUIT_QUESTION)
        box.setText(words.answers_writing(num_writing))
        box.setInformativeText(words.QUIT_KEEPS)
        quit_button = box.addButton(words.QUIT, QMessageBox.ButtonRole.AcceptRole)
        box.addButton(words.CANCEL, QMessageBox.ButtonRole.RejectRole)
        box.setDefaultButton(quit_button)
        box.accepted.connect(self._on_accepted)
        box.finished.connect(self._on_finished)
        box.open()

    def _on_accepted(self) -> None:
        self._is_certain = True
        QApplication.quit()

    def _on_finished(self) -> None:
        self._box = None
