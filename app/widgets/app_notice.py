"""The notice about the app: a crash, a rescue, a full disk, or a file that could not be opened."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from app.controllers.core import Core
from app.crashes import crash_problem
from app.theme.palette import Theme
from app.widgets.folders import show_folder
from app.widgets.notice import Notice
from app.words import window as words
from engine.problem import Problem


class AppNotice(Notice):
    """A notice that does not belong to a conversation.

    A notice of a crash or of a rescued database stays until the user closes it. A notice of a file
    that could not be opened goes when the user does something else: opens a file, sends a message,
    shows another chat or chooses a model. It is a toast while the other notice is on show.
    """

    said = Signal(str)  # argument: a sentence for a toast

    def __init__(self, theme: Theme, core: Core, parent: QWidget) -> None:
        super().__init__(theme, parent)
        self._models = core.models
        self._is_refusal = False  # True while the notice says that a file could not be opened
        self._is_full_disk = False  # True while the notice says that the disk is full
        self._model_path = ""  # path of the model in use when the file was refused
        core.store.rescued.connect(self._show_rescue)
        core.store.became_read_only.connect(self._show_full_disk)
        core.store.became_writable.connect(self._end_full_disk)
        core.opening.refused.connect(self._show_refusal)
        core.opening.opened.connect(self.end_refusal)
        core.library.current_changed.connect(self.end_refusal)
        core.models.status_changed.connect(self._on_status_changed)

    def end_refusal(self) -> None:
        """Hide the notice if it says that a file could not be opened."""
        if self._is_refusal:
            self.hide()

    def _show_refusal(self, problem: Problem) -> None:
        if not self.isHidden() and not self._is_refusal:
            self.said.emit(str(problem))
            return
        self.say(problem)
        self._is_refusal, self._model_path = True, self._models.status.path

    def _on_status_changed(self) -> None:
        if self._models.status.path != self._model_path:
            self.end_refusal()

    def show_crash(self, account: Path) -> None:
        """Report a crash of the last run. A button opens the folder of the log file `account`."""
        self._is_refusal = self._is_full_disk = False
        self.offer(crash_problem(account), words.SHOW_LOG, partial(show_folder, account.parent))

    def _show_full_disk(self, problem: Problem) -> None:
        self._is_refusal = False
        self.say(problem)
        self._is_full_disk = True

    def _end_full_disk(self) -> None:
        if self._is_full_disk:
            self._is_full_disk = False
            self.hide()

    def _show_rescue(self, problem: Problem) -> None:
        """Report a rescued database. The problem's details are the path of the damaged file."""
        self._is_refusal = False
        folder = Path(problem.details).parent
        self.offer(problem, words.SHOW_FOLDER, partial(show_folder, folder))
