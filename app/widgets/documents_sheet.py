"""The sheet with the documents of a folder: add, remove and read them again, and their state.

Main thread. Every change applies at once and can be undone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QRect, QRectF, Qt
from PySide6.QtGui import (
    QColor,
    QDragEnterEvent,
    QDropEvent,
    QFontMetrics,
    QPainter,
)
from PySide6.QtWidgets import (
    QDialog,
    QHBoxLayout,
    QLabel,
    QListWidgetItem,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from app.controllers.core import Core
from app.conversation.attachments import Attachment
from app.conversation.folder import Folder
from app.conversation.placement import FolderId
from app.conversation.text import file_label
from app.theme.icons import GRID, Icon
from app.theme.palette import Theme
from app.theme.tokens import Size, Space, Type
from app.viewmodels.direction import isolated
from app.viewmodels.document_lines import (
    DocumentLine,
    FileState,
    can_pause,
    document_rows,
    opening_row,
    summary_line,
)
from app.widgets.attaching import local_paths
from app.widgets.button import Button
from app.widgets.dialogs import ask_for_files
from app.widgets.line_height import Sentences
from app.widgets.painted_list import ROW, RowDelegate, SheetList
from app.words import folder_documents as words

_LINES = 5  # rows that are visible without scrolling, fewer in a low window
_LEAST_LINES = 2
_AROUND = 320  # height of the other parts of the sheet in px


class DocumentsSheet(QDialog):
    """A list of documents, buttons for the selected ones, and the state of all of them."""

    def __init__(
        self,
        theme: Theme,
        core: Core,
        folder: Folder,
        open_text: Callable[[Attachment, QWidget], object],
        parent: QWidget,
    ) -> None:
        super().__init__(parent)
        self.setObjectName("documentsSheet")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(words.title(folder.name))
        self.setFixedWidth(_width(theme, parent.window()))
        self.setAcceptDrops(True)
        self._core = core
        self._folder_id: FolderId = folder.folder_id
        self._open_text = open_text
        self._files = core.document_files
        self.list = _DocumentList(theme, parent.window().height(), self)
        self.summary = Sentences(self, "small")
        self.note = Sentences(self, "small", words.NOTE)
        self.refusal = Sentences(self, "small")
        self.add_button = Button(words.ADD, self)
        self.remove_button = Button(words.REMOVE, self)
        self.open_button = Button(words.OPEN_TEXT, self)
        self.again_button = Button(words.READ_AGAIN, self)
        self.pause_button = Button(words.PAUSE, self)
        self.done_button = Button(words.DONE, self)
        self._build()
        self._connect()
        self._refresh()
        self.list.setCurrentRow(0)
        (self.list if self.list.count() else self.add_button).setFocus()
        self._files.look(self._folder_id)

    @property
    def places(self) -> list[int]:
        """The places of the selected documents, in order."""
        return [row for row in self._selected if row < self._num_documents]

    @property
    def _selected(self) -> list[int]:
        """The selected rows: documents, and below them files that are being opened."""
        return sorted(self.list.row(item) for item in self.list.selectedItems())

    @property
    def _num_documents(self) -> int:
        return 0 if self._folder is None else len(self._folder.documents)

    @property
    def _folder(self) -> Folder | None:
        return self._core.folders.get(self._folder_id)

    def _build(self) -> None:
        title = QLabel(self.windowTitle(), self)
        title.setProperty("type", "title")
        title.setTextFormat(Qt.TextFormat.PlainText)
        title.setWordWrap(True)
        for label in (self.note, self.summary):
            label.setProperty("tone", "secondary")
        self.refusal.setProperty("tone", "error")
        self.refusal.hide()
        self.done_button.setProperty("kind", "primary")
        self.done_button.setDefault(True)
        actions, bottom = QHBoxLayout(), QHBoxLayout()
        for row in (actions, bottom):
            row.setSpacing(Space.S)
        buttons = (self.add_button, self.remove_button, self.open_button, self.again_button)
        for button in (*buttons, self.pause_button):
            button.setAutoDefault(False)
        for button in buttons:
            actions.addWidget(button)
        actions.addStretch()
        bottom.addWidget(self.pause_button)
        bottom.addStretch()
        bottom.addWidget(self.done_button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(Space.XL, Space.L, Space.XL, Space.L)
        layout.setSpacing(Space.M)
        for part in (title, self.list, self.summary):
            layout.addWidget(part)
        layout.addLayout(actions)
        layout.addWidget(self.note)
        layout.addWidget(self.refusal)
        layout.addLayout(bottom)

    def _connect(self) -> None:
        core = self._core
        self.list.itemSelectionChanged.connect(self._show_choices)
        self.list.itemActivated.connect(self._open_selected)
        self.list.delete_pressed.connect(self._remove)
        self.add_button.clicked.connect(self._choose)
        self.remove_button.clicked.connect(self._remove)
        self.open_button.clicked.connect(self._open_selected)
        self.again_button.clicked.connect(self._read_again)
        self.pause_button.clicked.connect(self._toggle_pause)
        self.done_button.clicked.connect(self.accept)
        core.folders.changed.connect(self._refresh)
        core.models.status_changed.connect(self._refresh)
        self._files.changed.connect(self._on_changed)
        core.documents.changed.connect(self._on_changed)
        self._files.refused.connect(self._on_refused)

    def _on_changed(self, folder_id: FolderId) -> None:
        if folder_id == self._folder_id:
            self._refresh()

    def _refresh(self) -> None:
        """Show the documents of now. Close the sheet if the folder was deleted."""
        folder = self._folder
        if folder is None:
            self.reject()
            return
        core = self._core
        status = core.documents.status(self._folder_id)
        rows = document_rows(folder, status, self._files.states(self._folder_id))
        opening = self._files.opening(self._folder_id)
        rows += [opening_row(file_label(path), share) for path, share in opening]
        self.list.show_rows(rows)
        facts = core.models.status.facts
        model_name = "" if facts is None else core.models.status.name or facts.title
        summary = "" if status is None else summary_line(status, model_name)
        self.summary.setText(summary if folder.documents else words.NONE)
        self.summary.setVisible(bool(self.summary.text()))
        self.pause_button.setVisible(can_pause(status))
        is_paused = status is not None and status.is_paused
        self.pause_button.setText(words.RESUME if is_paused else words.PAUSE)
        self._show_choices()

    def _show_choices(self) -> None:
        """Enable the buttons for the selected documents, and show the note on a changed one."""
        places = self.places
        self.remove_button.setEnabled(bool(self._selected))
        self.open_button.setEnabled(len(places) == 1)
        state = self.list.row_at(places[0]).file_state if len(places) == 1 else None
        self.again_button.setVisible(state is FileState.CHANGED)
        note = words.NOTE
        if state is FileState.CHANGED and self._folder is not None:
            note = words.changed_note(len(self._folder.documents) - 1 - places[0])
        elif state is FileState.GONE:
            note = words.GONE_NOTE
        self.note.setText(note)

    def _choose(self) -> None:
        ask_for_files(self, self._add, title=words.ADD_TITLE)

    def _add(self, paths: Sequence[Path]) -> None:
        self.refusal.hide()
        self._files.add(self._folder_id, paths)

    def _remove(self) -> None:
        """Remove the selected documents, and stop the selected openings."""
        places, count = self.places, self._num_documents
        self._files.cancel(self._folder_id, [row - count for row in self._selected if row >= count])
        self._files.remove(self._folder_id, places)

    def _read_again(self) -> None:
        self.refusal.hide()
        self._files.read_again(self._folder_id, self.places[0])

    def _open_selected(self) -> None:
        places, folder = self.places, self._folder
        if len(places) == 1 and folder is not None:
            self._open_text(folder.documents[places[0]].attachment, self)

    def _toggle_pause(self) -> None:
        status = self._core.documents.status(self._folder_id)
        if status is not None:
            self._core.documents.pause(self._folder_id, not status.is_paused)

    def _on_refused(self, folder_id: FolderId, sentences: tuple[str, ...]) -> None:
        if folder_id == self._folder_id:
            self.refusal.setText("\n".join(sentences))
            self.refusal.show()

    @override
    def dragEnterEvent(self, arg__1: QDragEnterEvent) -> None:
        if local_paths(arg__1.mimeData()):
            arg__1.setDropAction(Qt.DropAction.CopyAction)
            arg__1.accept()

    @override
    def dropEvent(self, arg__1: QDropEvent) -> None:
        arg__1.setDropAction(Qt.DropAction.CopyAction)
        arg__1.accept()
        self._add(local_paths(arg__1.mimeData()))


class _DocumentList(SheetList):
    """The list of documents, in the order in which the model reads them."""

    def __init__(self, theme: Theme, window_height: int, parent: QWidget) -> None:
        height = Type.UI.line + Type.SMALL.line + 2 * Space.XS
        delegate = _DocumentDelegate(theme, height, parent)
        super().__init__(words.DOCUMENTS, delegate, parent)
        row = delegate.row_height
        room = window_height - round(_AROUND * max(1.0, theme.zoom))
        self.setFixedHeight(max(_LEAST_LINES, min(_LINES, room // row)) * row)

    def row_at(self, place: int) -> DocumentLine:
        row = self.item(place).data(ROW)
        assert isinstance(row, DocumentLine)
        return row

    def show_rows(self, rows: list[DocumentLine]) -> None:
        """Show rows. Rows that stay at their place keep the selection and the focus."""
        while self.count() > len(rows):
            self.takeItem(self.count() - 1)
        while self.count() < len(rows):
            QListWidgetItem(self)
        for place, row in enumerate(rows):
            item = self.item(place)
            if item.data(ROW) != row:
                item.setData(ROW, row)
                item.setToolTip(row.name)
                item.setData(Qt.ItemDataRole.AccessibleTextRole, row.spoken)
        self.viewport().update()


class _DocumentDelegate(RowDelegate):
    """Paints a row: an icon, the name, and below it the tokens and the state."""

    @override
    def paint_content(self, painter: QPainter, rect: QRect, row: object) -> None:
        assert isinstance(row, DocumentLine)
        theme, colors = self._theme, self._theme.colors
        rect = rect.adjusted(0, Space.XS, 0, -Space.XS)
        size = theme.scaled(GRID)
        icon = QRectF(rect.left(), rect.center().y() - size / 2, size, size)
        theme.icons.paint(painter, Icon.FILE, colors.secondary, icon)
        rect.setLeft(round(icon.right()) + Space.S)
        has_details = bool(row.details)
        font = theme.zoomed_font(Type.UI)
        painter.setFont(font)
        painter.setPen(QColor(colors.secondary if row.is_opening else colors.text))
        upper = rect.adjusted(0, 0, 0, -rect.height() // 2 if has_details else 0)
        name = QFontMetrics(font).elidedText(row.name, Qt.TextElideMode.ElideMiddle, rect.width())
        painter.drawText(upper, Qt.AlignmentFlag.AlignVCenter, isolated(name))
        if has_details:
            small = theme.zoomed_font(Type.SMALL)
            painter.setFont(small)
            painter.setPen(QColor(colors.secondary))
            details = QFontMetrics(small).elidedText(
                row.details, Qt.TextElideMode.ElideRight, rect.width()
            )
            lower = rect.adjusted(0, rect.height() // 2, 0, 0)
            painter.drawText(lower, Qt.AlignmentFlag.AlignVCenter, details)


def _width(theme: Theme, window: QWidget) -> int:
    """Return a width that grows with the text, inside the main window."""
    wanted = round(Size.PICKER_WIDTH * max(1.0, theme.zoom))
    return min(wanted, max(Size.PICKER_WIDTH, window.width() - 2 * Space.XL))
