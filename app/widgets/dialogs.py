"""The app's dialogs. All except show_problem return at once and pass results to callbacks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QStandardPaths, Qt
from PySide6.QtWidgets import QFileDialog, QMessageBox, QWidget

from app.words import commands, dialogs as words, window
from engine.types import Problem


def ask_for_folder(parent: QWidget, on_chosen: Callable[[Path], object]) -> None:
    dialog = QFileDialog(parent, words.ADD_FOLDER)
    dialog.setFileMode(QFileDialog.FileMode.Directory)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)

    def on_selected(folder: str) -> None:
        on_chosen(Path(folder))

    dialog.fileSelected.connect(on_selected)
    dialog.open()


def ask_where_to_save(parent: QWidget, suggested: str, on_chosen: Callable[[Path], object]) -> None:
    dialog = QFileDialog(parent, words.SAVE_AS)
    dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
    # Start in Downloads: the working folder of a bundled app is the root of the disk.
    dialog.setDirectory(
        QStandardPaths.writableLocation(QStandardPaths.StandardLocation.DownloadLocation)
    )
    dialog.selectFile(suggested)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)

    def on_selected(path: str) -> None:
        on_chosen(Path(path))

    dialog.fileSelected.connect(on_selected)
    dialog.open()


def show_problem(problem: Problem) -> None:
    """Show a problem in a box while the app has no window. Return after the user closes the box."""
    box = QMessageBox(QMessageBox.Icon.Critical, window.APP_NAME, problem.title)
    box.setInformativeText(f"{problem.cause} {problem.advice}".strip())
    box.setDetailedText(problem.details)
    box.exec()


def show_about(parent: QWidget) -> None:
    # Imported here because the import is slow: it would use a sixth of the time limit for opening
    # the window.
    from importlib.metadata import version  # noqa: PLC0415

    box = QMessageBox(parent)
    box.setWindowTitle(commands.ABOUT)
    box.setText(words.about(version("rejoinder")))
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    box.open()
