"""The command Go To: fills the quick switcher, and opens or runs what the user chooses in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path

from PySide6.QtCore import QObject
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QWidget

from app.controllers.core import Core
from app.theme.palette import Theme
from app.viewmodels.fuzzy import Name
from app.viewmodels.switcher import Entry, EntryKind
from app.widgets.commands import MENUS, Actions, CommandId
from app.widgets.menu_text import shown
from app.widgets.switcher import QuickSwitcher
from app.words import switcher as words
from engine.types import ConversationId


class Switching(QObject):
    """Connects the quick switcher with the chats, the commands and the models."""

    def __init__(
        self,
        theme: Theme,
        core: Core,
        actions: Actions,
        focus_text: Callable[[], None],
        window: QWidget,
    ) -> None:
        """`focus_text` moves the focus to the text that the user writes."""
        super().__init__(window)
        self._focus_text = focus_text
        self._core = core
        self._actions = actions
        self._theme = theme
        self._window = window

    @cached_property
    def popup(self) -> QuickSwitcher:
        """The quick switcher, which is created when it is first opened."""
        popup = QuickSwitcher(self._theme, self._window)
        popup.chosen.connect(self._on_chosen)
        return popup

    def open(self) -> None:
        self.popup.open_over(self._window, [*self._chats(), *self._commands(), *self._models()])

    def _chats(self) -> Iterator[Entry]:
        folders = self._core.folders
        for summary in self._core.library.listed.all:
            place = summary.placement
            folder = folders.get(place.folder_id)
            note = words.ARCHIVED if place.archived else "" if folder is None else folder.name
            yield Entry(
                kind=EntryKind.CHAT,
                key=summary.conversation_id,
                name=Name.of(summary.title),
                note=note,
                is_archived=place.archived,
            )

    def _commands(self) -> Iterator[Entry]:
        """Yield the commands that would have an effect now."""
        for menu, command in ((menu, row) for menu, rows in MENUS.items() for row in rows):
            action = self._actions[command.id]
            if not action.isEnabled() or command.id is CommandId.SWITCHER:
                continue
            keys = action.shortcut().toString(QKeySequence.SequenceFormat.NativeText)
            text = shown(action.text()).removesuffix("…")
            yield Entry(
                kind=EntryKind.COMMAND,
                key=command.id,
                name=Name.of(f"{command.group}: {text}" if command.group else text),
                note=" · ".join([words.ON] * action.isChecked() + [keys or menu]),
            )

    def _models(self) -> Iterator[Entry]:
        models = self._core.models
        for card in models.cards:
            if card.usable:
                in_use = card.is_at(models.status.path)
                yield Entry(
                    kind=EntryKind.MODEL,
                    key=str(card.path),
                    name=Name.of(card.title),
                    note=words.IN_USE if in_use else words.MODEL,
                )

    def _on_chosen(self, entry: Entry) -> None:
        match entry.kind:
            case EntryKind.CHAT:
                self._core.library.select(ConversationId(entry.key))
                self._focus_text()
            case EntryKind.COMMAND:
                self._actions[CommandId(entry.key)].trigger()
            case EntryKind.MODEL:
                self._core.models.choose(Path(entry.key))
