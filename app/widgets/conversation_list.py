"""The list of conversations in the sidebar: select one or several, rename, delete, drag.

The view shows the rows of a ConversationsModel: headings, folders and conversations. One selected
conversation is opened. Shift and Ctrl (⌘ on a Mac) select several, which opens none of them. An
action of the user only emits a signal; for renaming, the model emits the signal. The sidebar
connects the signals to the controllers and calls `show_rows` with the new rows. On `pointed_at` the
controller loads a conversation from the store before the user clicks it. Main thread.
"""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import (
    QEvent,
    QItemSelectionModel,
    QModelIndex,
    QPersistentModelIndex,
    QPoint,
    QRect,
    QSignalBlocker,
    Qt,
    QTimer,
    Signal,
)
from PySide6.QtGui import (
    QContextMenuEvent,
    QCursor,
    QDragEnterEvent,
    QDragLeaveEvent,
    QDragMoveEvent,
    QDropEvent,
    QFocusEvent,
    QHelpEvent,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
)
from PySide6.QtWidgets import QAbstractItemView, QListView, QWidget
from typing_extensions import override

from app.theme.palette import Theme
from app.viewmodels.conversations import (
    MIME_TYPE,
    ConversationRow,
    ConversationsModel,
    FolderRow,
    Row,
    dragged_chats,
)
from app.widgets.conversation_delegate import ConversationDelegate
from app.widgets.focus_ring import BY_KEYS
from app.widgets.hiding_bar import HidingBar
from app.widgets.key_press import is_typing
from app.widgets.painted_list import set_up_list
from app.widgets.tips import is_tip_shown, show_tip
from app.words import window as words
from engine.types import ConversationId

# Milliseconds from entering a row to `pointed_at`: longer than a pointer takes to cross a row,
# shorter than a user takes to click.
REST_MS = 30
_BATCH_ROWS = 1000

# Keys that open the first row, which has the focus while no row is selected.
_OPENING = (
    Qt.Key.Key_Down, Qt.Key.Key_Up, Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space,
)  # fmt: skip


class ConversationList(QListView):
    """The list view of a ConversationsModel."""

    chosen = Signal(object)  # argument: ConversationId of the row that the user selected
    selection_changed = Signal()  # other conversations are selected
    pointed_at = Signal(object)  # argument: ConversationId of the row on which the pointer rests
    delete_requested = Signal(object)  # argument: list of the ConversationIds
    folder_toggled = Signal(object)  # argument: FolderId of the folder to open or close
    # arguments: the row of a menu, list of the ConversationIds for which it is, its global position
    menu_requested = Signal(object, object, QPoint)
    space_menu_requested = Signal(QPoint)  # argument: global position of a click beside the rows
    # arguments: list of the dropped ConversationIds, the row on which they were dropped or None
    dropped = Signal(object, object)
    typed = Signal(str)  # argument: text that the user typed; it belongs in the composer
    # The tooltip of a row is shown. Arguments: its ConversationId, a function that adds a line with
    # the state and the cost of the next message to the tooltip.
    tip_shown = Signal(object, object)

    def __init__(self, theme: Theme, model: ConversationsModel, parent: QWidget) -> None:
        super().__init__(parent)
        self._rows = model
        self._current: ConversationId | None = None  # the conversation on show
        # True if another conversation is on show and the list has not scrolled to it yet
        self._must_scroll = False
        self.setVerticalScrollBar(HidingBar(self))
        self.setModel(model)
        delegate = self._delegate = ConversationDelegate(theme, model, self)
        self.setItemDelegate(delegate)
        self.setAccessibleName(words.CHATS)
        set_up_list(self)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setDragEnabled(True)
        self.setAcceptDrops(True)
        self.setDropIndicatorShown(False)  # the delegate outlines the folder
        self.setDefaultDropAction(Qt.DropAction.MoveAction)
        self._rest = QTimer(self, singleShot=True, interval=REST_MS)
        self._rest.timeout.connect(self._on_rest)
        self.entered.connect(self._on_entered)
        # Thousands of rows are laid out a part at a time, between other events.
        self.setLayoutMode(QListView.LayoutMode.Batched)
        self.setBatchSize(_BATCH_ROWS)
        trigger = QAbstractItemView.EditTrigger
        self.setEditTriggers(trigger.DoubleClicked | trigger.EditKeyPressed)
        delegate.menu_requested.connect(self._on_menu_requested)
        self.selectionModel().selectionChanged.connect(self._on_selection_changed)
        theme.changed.connect(self.viewport().update)
        theme.zoomed.connect(self._on_zoomed)

    @property
    def selected(self) -> list[ConversationId]:
        """The selected conversations, from the top."""
        rows = map(self._rows.row_at, sorted(self.selectedIndexes(), key=QModelIndex.row))
        return [row.conversation_id for row in rows if isinstance(row, ConversationRow)]

    @property
    def row(self) -> Row | None:
        """The row that the keys act on."""
        index = self.currentIndex()
        return self._rows.row_at(index) if index.isValid() else None

    def show_rows(self, rows: list[Row], current: ConversationId) -> None:
        """Show these rows, without emitting `chosen`.

        Select the conversation on show if it is another one than before. Otherwise the selection
        stays.
        """
        chosen = self.selected
        bar = self.verticalScrollBar()
        place = bar.value()
        with QSignalBlocker(self.selectionModel()):
            self._rows.set_rows(rows)
            index = self._rows.index_of(current)
            is_other, self._current = current != self._current, current
            stays = set(chosen) & set(self.selected) or isinstance(self.row, FolderRow)
            if is_other or not stays:
                self._select_only(index)
        if place and bar.value() == 0 and not is_other:  # a reset of the model has scrolled up
            self.executeDelayedItemsLayout()
            bar.setValue(place)
        if is_other:
            self._must_scroll = True
            self._reveal_current()
        self.viewport().update()
        if chosen != self.selected:
            self.selection_changed.emit()

    def follow(self) -> None:
        """Scroll to the conversation on show, whose row may have moved, and select its row."""
        if self._current is not None and self._current not in self.selected:
            with QSignalBlocker(self.selectionModel()):
                self._select_only(self._rows.index_of(self._current))
            self.selection_changed.emit()
        self._must_scroll = True
        self._reveal_current()

    def edit_current(self) -> None:
        """Open the editor for the title of the selected conversation or folder."""
        if self.currentIndex().isValid():
            self.edit(self.currentIndex())

    def edit_row(self, row: Row) -> None:
        """Open the editor for a row, if the row is still there."""
        indexes = map(self._rows.index, range(self._rows.rowCount()))
        found = next((index for index in indexes if self._rows.row_at(index) == row), None)
        if found is not None:
            self.edit(found)

    def folder_at(self, at: QPoint) -> FolderRow | None:
        """Return the folder whose row is at a position in the viewport, or None."""
        row = self._row_at(at)
        return row if isinstance(row, FolderRow) else None

    def aim_at(self, row: Row | None) -> None:
        """Outline the folder of a row, which would get what is dragged. None: no folder."""
        aim = row.folder_id if isinstance(row, FolderRow | ConversationRow) else None
        if aim != self._delegate.aim:
            self._delegate.aim = aim
            self.viewport().update()

    def _select_only(self, index: QModelIndex) -> None:
        """Select one row, or none if the index is invalid.

        QListView.setCurrentIndex would add the row to the selection while a key is held with ⌘.
        """
        self.selectionModel().setCurrentIndex(
            index, QItemSelectionModel.SelectionFlag.ClearAndSelect
        )

    def _show_menu(self, index: QModelIndex, at: QPoint) -> None:
        """Ask for the menu of a row. The menu of a selected row is for all selected rows."""
        row = self._rows.row_at(index)
        ids = self.selected if self.selectionModel().isSelected(index) else []
        if isinstance(row, ConversationRow) and row.conversation_id not in ids:
            ids = [row.conversation_id]
        self.menu_requested.emit(row, ids, at)

    def _on_menu_requested(self, index: QModelIndex, rect: QRect) -> None:
        self._show_menu(index, self.viewport().mapToGlobal(rect.bottomLeft()))

    def _on_entered(self, _index: QModelIndex) -> None:
        self._rest.start()

    def _on_rest(self) -> None:
        row = self._row_at(self.viewport().mapFromGlobal(QCursor.pos()))
        if isinstance(row, ConversationRow):
            self.pointed_at.emit(row.conversation_id)

    def _on_zoomed(self) -> None:
        self._must_scroll = True
        self.scheduleDelayedItemsLayout()

    def _on_selection_changed(self) -> None:
        ids = self.selected
        if len(ids) == 1:
            self._current = ids[0]
            self._must_scroll = False  # the user sees the selected row
            self.chosen.emit(ids[0])
        self.selection_changed.emit()

    def _row_at(self, at: QPoint) -> Row | None:
        """Return the row at a position in the viewport, or None."""
        index = self.indexAt(at)
        return self._rows.row_at(index) if index.isValid() else None

    def _reveal_current(self) -> None:
        """Scroll to the conversation on show, if it is laid out already."""
        index = self._rows.index_of(self._current) if self._current else QModelIndex()
        if self._must_scroll and self.visualRect(index).isValid():
            self._must_scroll = False
            self.scrollTo(index)

    @override
    def updateGeometries(self) -> None:
        """Update the scroll bar after the last part of the rows is laid out, or after a resize."""
        super().updateGeometries()
        self._reveal_current()

    @override
    def viewportEvent(self, event: QEvent) -> bool:
        done = super().viewportEvent(event)
        if isinstance(event, QHelpEvent) and event.type() is QEvent.Type.ToolTip:
            row = self._row_at(event.pos())
            if isinstance(row, ConversationRow):
                add = partial(self._add_line, row, event.globalPos())
                self.tip_shown.emit(row.conversation_id, add)
        return done

    def _add_line(self, row: ConversationRow, at: QPoint, line: str) -> None:
        if is_tip_shown() and self._row_at(self.viewport().mapFromGlobal(at)) == row:
            show_tip(self, at, self._rows.tip_of(row, line))

    @override
    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        by_mouse = event.reason() is QContextMenuEvent.Reason.Mouse
        index = self.indexAt(event.pos()) if by_mouse else self.currentIndex()
        if index.isValid() and index.flags() & Qt.ItemFlag.ItemIsEnabled:
            at = event.globalPos()
            if not by_mouse:
                at = self.viewport().mapToGlobal(self.visualRect(index).bottomLeft())
            self._show_menu(index, at)
        else:
            self.space_menu_requested.emit(event.globalPos())

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        deletes = event.matches(QKeySequence.StandardKey.Delete) or event.keyCombination() == (
            Qt.KeyboardModifier.ControlModifier | Qt.Key.Key_Backspace
        )
        row = self.row
        if deletes and self.selected:
            self.delete_requested.emit(self.selected)
        elif isinstance(row, FolderRow) and _toggles(event, row):
            self._delegate.shows_focus = True
            self.folder_toggled.emit(row.folder_id)
        elif event.key() == Qt.Key.Key_Escape and len(self.selected) > 1 and self._current:
            self._select_only(self._rows.index_of(self._current))
        elif isinstance(row, ConversationRow) and not self.selected and event.key() in _OPENING:
            self._select_only(self.currentIndex())
        elif is_typing(event):
            self.typed.emit(event.text())
        else:
            self._delegate.shows_focus = True
            super().keyPressEvent(event)

    @override
    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._delegate.shows_focus = False
        folder = self.folder_at(event.position().toPoint())
        on_menu = self._delegate.is_menu_at(self, event.position().toPoint())
        if event.button() == Qt.MouseButton.RightButton:
            return  # a right click leaves the selection; contextMenuEvent shows the menu
        if folder is not None and event.button() == Qt.MouseButton.LeftButton and not on_menu:
            self.folder_toggled.emit(folder.folder_id)
            return
        super().mousePressEvent(event)

    @override
    def selectionCommand(
        self, index: QModelIndex | QPersistentModelIndex, event: QEvent | None = None
    ) -> QItemSelectionModel.SelectionFlag:
        """Leave the selection on a click on the menu button of a selected row.

        Otherwise the release of the button would select only this row, below a menu for all.
        """
        if (
            isinstance(event, QMouseEvent)
            and len(self.selected) > 1
            and self.selectionModel().isSelected(index)
            and self._delegate.is_menu_at(self, event.position().toPoint())
        ):
            return QItemSelectionModel.SelectionFlag.NoUpdate
        return super().selectionCommand(index, event)

    @override
    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        if self.folder_at(event.position().toPoint()) is None:
            super().mouseDoubleClickEvent(event)

    @override
    def focusInEvent(self, event: QFocusEvent) -> None:
        """Begin at the first row, if the conversation on show is not listed. Skip an empty list."""
        by_keys = self._delegate.shows_focus = event.reason() in BY_KEYS
        super().focusInEvent(event)
        if by_keys and not self._rows.rowCount():
            self.focusNextPrevChild(event.reason() is Qt.FocusReason.TabFocusReason)
        elif by_keys and not self.currentIndex().isValid():
            first = self.moveCursor(self.CursorAction.MoveHome, Qt.KeyboardModifier.NoModifier)
            self.selectionModel().setCurrentIndex(first, QItemSelectionModel.SelectionFlag.NoUpdate)

    @override
    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if event.mimeData().hasFormat(MIME_TYPE):
            super().dragEnterEvent(event)
            event.acceptProposedAction()

    @override
    def dragMoveEvent(self, event: QDragMoveEvent) -> None:
        """Scroll near an edge, and outline the folder below the pointer."""
        super().dragMoveEvent(event)
        self.aim_at(self._row_at(event.position().toPoint()))
        event.setDropAction(Qt.DropAction.MoveAction)
        event.accept()

    @override
    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:
        super().dragLeaveEvent(event)
        self.aim_at(None)

    @override
    def dropEvent(self, event: QDropEvent) -> None:
        """Report the dragged conversations, and the row on which they were dropped."""
        row = self._row_at(event.position().toPoint())
        self.aim_at(None)
        self.setState(QAbstractItemView.State.NoState)
        event.setDropAction(Qt.DropAction.MoveAction)
        event.accept()
        self.dropped.emit(dragged_chats(event.mimeData()), row)


def _toggles(event: QKeyEvent, row: FolderRow) -> bool:
    """Return True for a key that opens a closed folder or closes an open one."""
    match event.key():
        case Qt.Key.Key_Right:
            return not row.is_open
        case Qt.Key.Key_Left:
            return row.is_open
        case Qt.Key.Key_Return | Qt.Key.Key_Enter | Qt.Key.Key_Space:
            return True
        case _:
            return False
