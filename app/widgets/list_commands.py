"""The menu commands for the list of chats: pin, archive, duplicate, delete, folders, order."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QObject

from app.controllers.core import Core
from app.widgets.commands import Actions, CommandId, connect_actions
from app.widgets.list_menus import ORDERS
from app.widgets.sidebar import Sidebar
from app.words import commands as words
from engine.types import ConversationId


class ListCommands(QObject):
    """The commands. They act on the selected chats, or on the chat on show if none is selected."""

    def __init__(self, core: Core, sidebar: Sidebar, actions: Actions) -> None:
        super().__init__(sidebar)
        self._core = core
        self._sidebar = sidebar
        self._actions = actions
        self._connect_commands()
        for changed in (
            core.library.current_changed,
            core.library.list_changed,
            sidebar.archived_toggled,
            sidebar.list.selection_changed,
        ):
            changed.connect(self._refresh)
        core.desk.changed.connect(self._on_chat_changed)
        core.turns.activity_changed.connect(self._on_chat_changed)
        self._refresh()

    def _connect_commands(self) -> None:
        organiser, copies = self._core.organiser, self._core.chat_copies
        order = self._core.preferences.change
        slots = {
            CommandId.NEW_FOLDER: lambda: self._sidebar.ask_for_folder(None, []),
            CommandId.ARCHIVED: lambda: self._sidebar.show_archived(
                not self._sidebar.shows_archived
            ),
            CommandId.PIN: lambda: organiser.pin(self._chosen, not self._are_pinned),
            CommandId.ARCHIVE: lambda: organiser.archive(self._chosen, not self._are_archived),
            CommandId.DUPLICATE: lambda: copies.duplicate(self._chosen),
            CommandId.DELETE: lambda: organiser.delete(self._chosen),
            **{command: partial(order, chat_order=one) for one, command in ORDERS.items()},
        }
        connect_actions(self._actions, slots)

    def _on_chat_changed(self, conversation_id: ConversationId) -> None:
        if conversation_id == self._core.library.current:
            self._refresh()

    def _refresh(self) -> None:
        """Enable the commands that would have an effect now, with a text that says which."""
        actions, chosen, library = self._actions, self._chosen, self._core.library
        can_copy = bool(chosen) and all(map(self._core.chat_copies.can_duplicate, chosen))
        for command, enabled in (
            (CommandId.PIN, bool(chosen) and not self._are_archived),
            (CommandId.ARCHIVE, bool(chosen)),
            (CommandId.DUPLICATE, can_copy),
            (CommandId.DELETE, bool(chosen)),
            (CommandId.ARCHIVED, bool(library.listed.archived)),
        ):
            actions[command].setEnabled(enabled)
        num = len(chosen)
        for command, text in (
            (CommandId.PIN, words.UNPIN if self._are_pinned else words.PIN),
            (CommandId.ARCHIVE, words.UNARCHIVE if self._are_archived else words.ARCHIVE),
            (CommandId.DUPLICATE, words.DUPLICATE),
        ):
            actions[command].setText(words.for_chats(text, num))
        actions[CommandId.DELETE].setText(words.delete_several(num) if num > 1 else words.DELETE)
        actions[CommandId.ARCHIVED].setChecked(self._sidebar.shows_archived)
        actions[ORDERS[self._core.preferences.value.chat_order]].setChecked(True)

    @property
    def _chosen(self) -> list[ConversationId]:
        return self._sidebar.chosen_chats

    @property
    def _are_pinned(self) -> bool:
        places = [self._core.library.listed.summary(one).placement for one in self._chosen]
        return bool(places) and all(place.pinned for place in places)

    @property
    def _are_archived(self) -> bool:
        places = [self._core.library.listed.summary(one).placement for one in self._chosen]
        return bool(places) and all(place.archived for place in places)
