"""What concerns the app and not the chat on show: how the last run ended, what could not be opened."""

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
    """Stays whatever chat is shown, until it is closed."""

    def __init__(self, theme: Theme, opening: Opening, parent: QWidget) -> None:
        super().__init__(theme, parent)
        opening.refused.connect(self.say)

    def show_crash(self, account: Path) -> None:
        """The last run was killed; account is what it left."""
        folder = QUrl.fromLocalFile(str(account.parent))
        show_folder = partial(QDesktopServices.openUrl, folder)
        self.offer(crash_problem(account), words.SHOW_LOG, show_folder)
