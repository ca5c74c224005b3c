"""The notice about the app itself: a crash of the last run, or a file that could not be opened."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QWidget

from app.controllers.opening import Opening
from app.crashes import crash_problem
from app.theme.palette import Theme
from app.widgets.notice import Notice
from app.words import window as words


class AppNotice(Notice):
    """A notice that stays until the user closes it, even if another conversation is shown."""

    def __init__(self, theme: Theme, opening: Opening, parent: QWidget) -> None:
        super().__init__(theme, parent)
        opening.refused.connect(self.say)

    def show_crash(self, account: Path) -> None:
        """Report a crash of the last run. A button opens the folder of the log file `account`."""
        folder = QUrl.fromLocalFile(str(account.parent))
        show_folder = partial(QDesktopServices.openUrl, folder)
        self.offer(crash_problem(account), words.SHOW_LOG, show_folder)
