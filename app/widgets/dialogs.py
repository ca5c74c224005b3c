"""The app's dialogs. They return at once and pass results to callbacks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QStandardPaths, Qt
from PySide6.QtWidgets import QDialog, QFileDialog, QWidget

from app.exchange.found import Unreadable
from app.widgets.message_sheet import MessageSheet
from app.widgets.paper.sheets import page_layout
from app.words import attachments, dialogs as words, exchange, several, window

if TYPE_CHECKING:
    from PySide6.QtPrintSupport import QPrinter

_SHOWN_LINES = 8  # lines of a list in a sheet; more lines scroll


def ask_for_folder(
    parent: QWidget, on_chosen: Callable[[Path], object], *, title: str = words.ADD_FOLDER
) -> None:
    dialog = QFileDialog(parent, title)
    dialog.setFileMode(QFileDialog.FileMode.Directory)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)

    def on_selected(folder: str) -> None:
        on_chosen(Path(folder))

    dialog.fileSelected.connect(on_selected)
    dialog.open()


def ask_for_files(
    parent: QWidget,
    on_chosen: Callable[[Sequence[Path]], object],
    *,
    title: str = attachments.ATTACH_TITLE,
) -> None:
    """Ask for files whose texts are read."""
    dialog = QFileDialog(parent, title)
    dialog.setFileMode(QFileDialog.FileMode.ExistingFiles)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)

    def on_selected(files: Sequence[str]) -> None:
        on_chosen(tuple(map(Path, files)))

    dialog.filesSelected.connect(on_selected)
    dialog.open()


def ask_for_hosts(parent: QWidget, on_chosen: Callable[[Path], object]) -> None:
    dialog = QFileDialog(parent, several.HOSTS_FILE)
    dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
    dialog.setNameFilter(several.HOSTS_FILES)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)

    def on_selected(file: str) -> None:
        on_chosen(Path(file))

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


def ask_where_to_export(
    parent: QWidget, suggested: str, kind: str, on_chosen: Callable[[Path], object]
) -> None:
    """Ask for a file to export to. `kind` is its ending at first; the user may choose another."""
    dialog = QFileDialog(parent, words.SAVE_AS)
    dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
    dialog.setDirectory(
        QStandardPaths.writableLocation(QStandardPaths.StandardLocation.DownloadLocation)
    )
    dialog.setNameFilters(list(exchange.KINDS.values()))
    endings = {text: ending for ending, text in exchange.KINDS.items()}

    def on_kind(text: str) -> None:
        dialog.setDefaultSuffix(endings[text])

    dialog.filterSelected.connect(on_kind)
    dialog.selectNameFilter(exchange.KINDS[kind])
    dialog.setDefaultSuffix(kind)
    dialog.selectFile(suggested + kind)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)

    def on_selected(path: str) -> None:
        on_chosen(Path(path))

    dialog.fileSelected.connect(on_selected)
    dialog.open()


def ask_to_print(parent: QWidget, title: str, on_chosen: Callable[[QPrinter], object]) -> None:
    """Show the print dialog of the system. `title` is the name of the print job."""
    # Imported here because few starts of the app print, and the import loads a library.
    from PySide6.QtPrintSupport import QPrintDialog, QPrinter  # noqa: PLC0415

    printer = QPrinter(QPrinter.PrinterMode.HighResolution)
    printer.setPageLayout(page_layout())
    printer.setDocName(title)
    dialog = QPrintDialog(printer, parent)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)

    def on_accepted() -> None:
        on_chosen(printer)

    dialog.accepted.connect(on_accepted)
    QDialog.open(dialog)  # QPrintDialog.open() has other parameters


def ask_for_imports(parent: QWidget, on_chosen: Callable[[list[Path]], object]) -> None:
    dialog = QFileDialog(parent, exchange.IMPORTED)
    dialog.setFileMode(QFileDialog.FileMode.ExistingFiles)
    dialog.setNameFilter(exchange.IMPORT_FILES)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)

    def on_selected(files: list[str]) -> None:
        on_chosen([Path(file) for file in files])

    dialog.filesSelected.connect(on_selected)
    dialog.open()


def show_unreadable(
    parent: QWidget,
    summary: str,
    items: Sequence[Unreadable],
    show: Callable[[], object] | None,
) -> None:
    """Show what an import could not read. `show` shows what it has added; None if nothing was."""
    text = f"{summary} {exchange.unreadable(len(items))}".strip()
    lines = exchange.lines((one.name, one.reason) for one in items)
    sheet = _list_sheet(exchange.IMPORTED, text, lines, parent)
    if show is not None:
        button = sheet.add_button(window.SHOW)
        button.clicked.connect(sheet.accept)
        button.clicked.connect(lambda: show())  # noqa: PLW0108 (without the signal's argument)
    _open_with_close(sheet)


def show_reasons(parent: QWidget, sentences: Sequence[str]) -> None:
    """Show why files were not attached."""
    title, text = attachments.ATTACH_TITLE, attachments.NOT_ALL_ATTACHED
    _open_with_close(_list_sheet(title, text, "\n".join(sentences), parent))


def _list_sheet(title: str, text: str, lines: str, parent: QWidget) -> MessageSheet:
    """Return a sheet with lines, which scroll if there are many."""
    is_long = lines.count("\n") >= _SHOWN_LINES
    sheet = MessageSheet(title, text, "" if is_long else lines, parent)
    if is_long:
        sheet.add_details(lines)
    return sheet


def _open_with_close(sheet: MessageSheet) -> None:
    """Open a sheet with a last button that closes it and has the focus."""
    close = sheet.add_button(window.CLOSE, is_default=True)
    close.clicked.connect(sheet.accept)
    close.setFocus()
    sheet.open()


def show_about(parent: QWidget) -> None:
    # Imported here because the import is slow: it would use a sixth of the time limit for opening
    # the window.
    from importlib.metadata import version  # noqa: PLC0415

    title, text = words.about(version("rejoinder")).split("\n\n", 1)
    sheet = MessageSheet(title, text, "", parent)
    _open_with_close(sheet)
