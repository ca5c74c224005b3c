"""The menus of the conversation list: of one or several conversations, a folder, the space."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QObject, QPoint, Signal

from app.controllers.core import Core
from app.conversation.folder import Folder
from app.conversation.placement import FolderId
from app.settings import ChatOrder
from app.viewmodels.conversations import ConversationRow, FolderRow, ListHeading, Row
from app.widgets.commands import Actions, CommandId
from app.widgets.conversation_list import ConversationList
from app.widgets.menu import Menu, pop_up
from app.widgets.menu_text import plain
from app.words import commands, folder_documents as document_words, folders as words
from engine.types import ConversationId

Ids = list[ConversationId]

ORDERS = {
    ChatOrder.RECENT: CommandId.BY_ACTIVITY,
    ChatOrder.CREATED: CommandId.BY_CREATION,
    ChatOrder.TITLE: CommandId.BY_TITLE,
}


class ListMenus(QObject):
    """Opens the menus that the conversation list asks for, and runs their actions."""

    # arguments: Folder to edit or None for a new one, list of ConversationIds to put into it
    folder_sheet_requested = Signal(object, object)
    documents_requested = Signal(object)  # argument: Folder whose documents are shown
    export_requested = Signal(object, str)  # arguments: list of ConversationIds, suggested name

    def __init__(self, chats: ConversationList, core: Core, actions: Actions) -> None:
        super().__init__(chats)
        self._list = chats
        self._organiser = core.organiser
        self._copies = core.chat_copies
        self._folders = core.folders
        self._library = core.library
        self._actions = actions
        chats.menu_requested.connect(self._on_menu_requested)
        chats.space_menu_requested.connect(self._on_space_menu_requested)

    def _on_menu_requested(self, row: Row, ids: Ids, at: QPoint) -> None:
        match row:
            case ConversationRow() if len(ids) == 1:
                pop_up(self._menu_of_one(row), at)
            case ConversationRow():
                pop_up(self._menu_of_several(ids), at)
            case FolderRow():
                pop_up(self._menu_of_folder(row), at)
            case ListHeading():
                self._on_space_menu_requested(at)

    def _menu_of_one(self, row: ConversationRow) -> Menu:
        menu, ids = Menu(self._list), [row.conversation_id]
        menu.addAction(commands.RENAME, lambda: self._list.edit_row(row))
        self._add_places(menu, ids)
        copy = menu.addAction(commands.DUPLICATE, lambda: self._copies.duplicate(ids))
        copy.setEnabled(self._copies.can_duplicate(row.conversation_id))
        keep = menu.addAction(commands.KEEP_READY)
        keep.setCheckable(True)
        keep.setChecked(row.keep_ready)
        keep.triggered.connect(
            lambda: self._organiser.keep_ready(row.conversation_id, not row.keep_ready)
        )
        menu.addAction(commands.EXPORT, lambda: self.export_requested.emit(ids, row.title))
        menu.addSeparator()
        menu.addAction(commands.DELETE, lambda: self._organiser.delete(ids))
        return menu

    def _menu_of_several(self, ids: Ids) -> Menu:
        menu, chats = Menu(self._list), words.chats(len(ids))
        self._add_places(menu, ids)
        copy = menu.addAction(
            commands.for_chats(commands.DUPLICATE, len(ids)), lambda: self._copies.duplicate(ids)
        )
        copy.setEnabled(all(map(self._copies.can_duplicate, ids)))
        menu.addAction(
            commands.export_several(len(ids)), lambda: self.export_requested.emit(ids, chats)
        )
        menu.addSeparator()
        menu.addAction(commands.delete_several(len(ids)), lambda: self._organiser.delete(ids))
        return menu

    def _add_places(self, menu: Menu, ids: Ids) -> None:
        """Add the entries that change the places of conversations."""
        places = [self._library.listed.summary(one).placement for one in ids]
        pins = not all(place.pinned for place in places)
        archives = not all(place.archived for place in places)
        pin = commands.PIN if pins else commands.UNPIN
        archive = commands.ARCHIVE if archives else commands.UNARCHIVE
        if archives:
            menu.addAction(
                commands.for_chats(pin, len(ids)), lambda: self._organiser.pin(ids, pins)
            )
        menu.addAction(
            commands.for_chats(archive, len(ids)), lambda: self._organiser.archive(ids, archives)
        )
        if not archives:
            return
        moving = menu.add_menu(words.move_to(len(ids)))
        inside = {place.folder_id for place in places}
        entries = [(words.NO_FOLDER, None)]
        entries += [(plain(one.name), one.folder_id) for one, _chats in self._arranged_folders]
        for name, folder_id in entries:
            action = moving.addAction(name, partial(self._organiser.move, ids, folder_id))
            action.setCheckable(True)
            action.setChecked({folder_id} == {self._known(one) for one in inside})
        moving.addSeparator()
        moving.addAction(words.NEW_FOLDER, lambda: self.folder_sheet_requested.emit(None, ids))

    @property
    def _arranged_folders(self) -> tuple[tuple[Folder, object], ...]:
        return self._organiser.arrangement.folders

    def _known(self, folder_id: FolderId | None) -> FolderId | None:
        return None if self._folders.get(folder_id) is None else folder_id

    def _menu_of_folder(self, row: FolderRow) -> Menu:
        menu = Menu(self._list)
        folder = self._folders.get(row.folder_id)
        assert folder is not None, "the list shows no deleted folder"
        menu.addAction(words.NEW_CHAT, lambda: self._library.new_chat(row.folder_id))
        menu.addAction(words.RENAME, lambda: self._list.edit_row(row))
        menu.addAction(
            words.FOLDER_SETTINGS, lambda: self.folder_sheet_requested.emit(folder, list[object]())
        )
        menu.addAction(document_words.OPEN_SHEET, lambda: self.documents_requested.emit(folder))
        chats = self._chats_of(row.folder_id)
        export = menu.addAction(
            words.EXPORT, lambda: self.export_requested.emit(chats, folder.name)
        )
        export.setEnabled(bool(chats))
        menu.addSeparator()
        menu.addAction(words.DELETE, lambda: self._folders.delete(row.folder_id))
        return menu

    def _chats_of(self, folder_id: FolderId) -> Ids:
        """Return all conversations of a folder, with those that are pinned or archived."""
        return [
            one.conversation_id
            for one in self._library.listed.all
            if one.placement.folder_id == folder_id
        ]

    def _on_space_menu_requested(self, at: QPoint) -> None:
        menu = Menu(self._list)
        menu.addAction(commands.NEW_CHAT, self._library.new_chat)
        menu.addAction(
            words.NEW_FOLDER, lambda: self.folder_sheet_requested.emit(None, list[object]())
        )
        menu.addSeparator()
        sorting = menu.add_menu(commands.SORT)
        sorting.addActions([self._actions[command] for command in ORDERS.values()])
        pop_up(menu, at)
