"""The dialogs of the data folder: choose a place, watch the move, delete the old copy."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtGui import QCloseEvent
from PySide6.QtWidgets import QDialog, QHBoxLayout, QProgressBar, QVBoxLayout, QWidget
from typing_extensions import override

from app.controllers.data_folder import DataFolder
from app.theme.tokens import Size, Space
from app.widgets.button import Button
from app.widgets.dialogs import ask_for_folder
from app.widgets.line_height import Sentences
from app.widgets.message_sheet import ask_before
from app.words import dialogs, storage as words


class MoveSheet(QDialog):
    """The progress of a move. It blocks the other windows, so that nothing changes meanwhile."""

    def __init__(self, data: DataFolder, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("moveSheet")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowModality(Qt.WindowModality.ApplicationModal)
        self.setWindowTitle(words.MOVE_TITLE)
        self.setFixedWidth(Size.SETTINGS_WIDTH * 2 // 3)
        self._data = data
        self.bar = QProgressBar(self)
        self.bar.setRange(0, 100)
        self.bar.setTextVisible(False)
        self.bar.setAccessibleName(words.MOVING)
        self.cancel_button = Button(dialogs.CANCEL, self)
        self.cancel_button.clicked.connect(data.cancel)
        buttons = QHBoxLayout()
        buttons.addStretch()
        buttons.addWidget(self.cancel_button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(Space.XL, Space.L, Space.XL, Space.L)
        layout.setSpacing(Space.M)
        layout.addWidget(Sentences(self, "ui", words.MOVING))
        layout.addWidget(self.bar)
        layout.addLayout(buttons)
        data.progressed.connect(self._show_share)
        data.ended.connect(self.accept)

    def _show_share(self, share: float) -> None:
        self.bar.setValue(round(100 * share))

    @override
    def reject(self) -> None:
        """Handle Esc like Cancel. The sheet closes when the move has ended."""
        self._data.cancel()

    @override
    def closeEvent(self, event: QCloseEvent) -> None:
        if self._data.is_moving:
            self._data.cancel()
            event.ignore()
        else:
            super().closeEvent(event)


def move_data(parent: QWidget, data: DataFolder) -> None:
    """Ask for a folder, then move the data there and show the progress."""

    def begin(folder: Path) -> None:
        if data.move(folder):
            MoveSheet(data, parent).open()

    ask_for_folder(parent, begin, title=words.MOVE_TITLE)


def ask_to_delete_old(parent: QWidget, data: DataFolder) -> None:
    """Delete the old copy after the user has confirmed it."""
    note = words.delete_old_note(str(data.folder))
    ask_before(parent, words.DELETE_OLD_QUESTION, note, words.DELETE, data.delete_old)
