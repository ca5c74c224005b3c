"""The list of conversations in the sidebar: select, rename, delete, keep ready.

The view shows the rows of a ConversationsModel: conversations, newest first, under date headings.
An action of the user only emits a signal with the ConversationId; for renaming, the model emits the
signal. The sidebar connects the signals to the LibraryController and calls `show_rows` with the new
rows. On `pointed_at` the controller loads a conversation from the store before the user clicks it.
Main thread.
"""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, QPoint, QRect, QSignalBlocker, Qt, QTimer, Signal
from PySide6.QtGui import (
    QContextMenuEvent,
    QCursor,
    QFocusEvent,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
)
from PySide6.QtWidgets import QAbstractItemView, QListView, QWidget
from typing_extensions import override

from app.theme.palette import Theme
from app.viewmodels.conversations import ConversationRow, ConversationsModel, Row
from app.widgets.conversation_delegate import ConversationDelegate
from app.widgets.focus_ring import BY_KEYS
from app.widgets.key_press import is_typing
from app.widgets.menu import Menu, pop_up
from app.words import commands, window as words
from engine.types import ConversationId

# Milliseconds from entering a row to `pointed_at`: longer than a pointer takes to cross a row,
# shorter than a user takes to click.
REST_MS = 30
_BATCH_ROWS = 1000


class ConversationList(QListView):
    """The list view of a ConversationsModel, with a context menu on each conversation."""

    chosen = Signal(object)  # argument: ConversationId of the row that the user selected
    pointed_at = Signal(object)  # argument: ConversationId of the row on which the pointer rests
    delete_requested = Signal(object)  # argument: the ConversationId
    # arguments: ConversationId, True to pin the conversation or False to unpin it
    keep_ready_requested = Signal(object, bool)
    typed = Signal(str)  # argument: text that the user typed; it belongs in the composer

    def __init__(self, theme: Theme, model: ConversationsModel, parent: QWidget) -> None:
        super().__init__(parent)
        self._rows = model
        self.setModel(model)
        delegate = self._delegate = ConversationDelegate(theme, model, self)
        self.setItemDelegate(delegate)
        self.setAccessibleName(words.CHATS)
        self.setMouseTracking(True)
        self._rest = QTimer(self, singleShot=True, interval=REST_MS)
        self._rest.timeout.connect(self._on_rest)
        self.entered.connect(self._on_entered)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        # Thousands of rows are laid out a part at a time, between other events.
        self.setLayoutMode(QListView.LayoutMode.Batched)
        self.setBatchSize(_BATCH_ROWS)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        trigger = QAbstractItemView.EditTrigger
        self.setEditTriggers(trigger.DoubleClicked | trigger.EditKeyPressed)
        delegate.menu_requested.connect(self._on_menu_requested)
        self.selectionModel().currentChanged.connect(self._on_current_changed)
        theme.changed.connect(self.viewport().update)
        theme.zoomed.connect(self.scheduleDelayedItemsLayout)

    def show_rows(self, rows: list[Row], current: ConversationId) -> None:
        """Show these rows and select the current conversation, without emitting `chosen`."""
        with QSignalBlocker(self.selectionModel()):
            self._rows.set_rows(rows)
            index = self._rows.index_of(current)
            if index != self.currentIndex() or not self.selectionModel().isSelected(index):
                self.setCurrentIndex(index)
        self.viewport().update()

    def edit_current(self) -> None:
        """Open the editor for the title of the selected conversation."""
        if self.currentIndex().isValid():
            self.edit(self.currentIndex())

    def _show_menu(self, index: QModelIndex, at: QPoint) -> None:
        row = self._rows.row_at(index)
        assert isinstance(row, ConversationRow)
        menu = Menu(self)
        menu.addAction(commands.RENAME, lambda: self.edit(index))
        keep = menu.addAction(commands.KEEP_READY)
        keep.setCheckable(True)
        keep.setChecked(row.keep_ready)
        keep.triggered.connect(
            lambda: self.keep_ready_requested.emit(row.conversation_id, not row.keep_ready)
        )
        menu.addAction(commands.DELETE, lambda: self.delete_requested.emit(row.conversation_id))
        pop_up(menu, at)

    def _on_menu_requested(self, index: QModelIndex, rect: QRect) -> None:
        self._show_menu(index, self.viewport().mapToGlobal(rect.bottomLeft()))

    def _on_entered(self, _index: QModelIndex) -> None:
        self._rest.start()

    def _on_rest(self) -> None:
        index = self.indexAt(self.viewport().mapFromGlobal(QCursor.pos()))
        row = self._rows.row_at(index) if index.isValid() else None
        if isinstance(row, ConversationRow):
            self.pointed_at.emit(row.conversation_id)

    def _on_current_changed(self, current: QModelIndex) -> None:
        row = self._rows.row_at(current) if current.isValid() else None
        if isinstance(row, ConversationRow):
            self.chosen.emit(row.conversation_id)

    @override
    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        index = self.indexAt(event.pos())
        if index.isValid() and isinstance(self._rows.row_at(index), ConversationRow):
            self._show_menu(index, event.globalPos())

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        row = self._rows.row_at(self.currentIndex()) if self.currentIndex().isValid() else None
        deletes = event.matches(QKeySequence.StandardKey.Delete) or event.keyCombination() == (
            Qt.KeyboardModifier.ControlModifier | Qt.Key.Key_Backspace
        )
        if deletes and isinstance(row, ConversationRow):
            self.delete_requested.emit(row.conversation_id)
        elif is_typing(event):
            self.typed.emit(event.text())
        else:
            self._delegate.shows_focus = True
            super().keyPressEvent(event)

    @override
    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._delegate.shows_focus = False
        super().mousePressEvent(event)

    @override
    def focusInEvent(self, event: QFocusEvent) -> None:
        self._delegate.shows_focus = event.reason() in BY_KEYS
        super().focusInEvent(event)
