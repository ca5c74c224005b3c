"""The menu commands that bring chats in and out: import, export, copy as Markdown. Main thread."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QApplication

from app.controllers.core import Core
from app.controllers.origin import Origin
from app.conversation.replies import stop_reply
from app.conversation.tree import Conversation
from app.exchange.documents import to_markdown
from app.exchange.exporting import file_name
from app.widgets.chat_pane import ChatPane
from app.widgets.commands import Actions, CommandId, connect_actions
from app.widgets.dialogs import (
    ask_for_imports,
    ask_to_print,
    ask_where_to_export,
    ask_where_to_save,
)
from app.widgets.paper.printing import Printing
from app.words import exchange as words
from engine.types import ConversationId


class ExchangeCommands(QObject):
    """The commands, which ask for files first. The controllers do the work."""

    def __init__(
        self, core: Core, origin: Origin, printing: Printing, pane: ChatPane, actions: Actions
    ) -> None:
        super().__init__(pane)
        self._window = pane.window()
        self._printing = printing
        self._core = core
        self._origin = origin
        slots = {
            CommandId.IMPORT: self._import_chats,
            CommandId.EXPORT: self._export_chat,
            CommandId.EXPORT_ALL: self._export_all,
            CommandId.SAVE_PDF: self._save_pdf,
            CommandId.PRINT: self._print_chat,
            CommandId.COPY_CHAT: self._copy_chat,
        }
        connect_actions(actions, slots)

    def export_chats(self, chats: Sequence[ConversationId], name: str) -> None:
        """Export chats to one file, which is called `name` at first."""
        ask_where_to_export(
            self._window,
            file_name(name),
            ".md" if len(chats) == 1 else ".json",
            lambda path: self._core.exports.export_several(path, chats),
        )

    def _import_chats(self) -> None:
        now = self._origin.now()
        ask_for_imports(self._window, lambda paths: self._core.imports.start(paths, now=now))

    def _export_chat(self) -> None:
        filed = self._core.organiser.filed(self._shown)
        ask_where_to_export(
            self._window,
            file_name(filed.conversation.title),
            ".md",
            lambda path: self._core.exports.export_one(path, filed),
        )

    def _save_pdf(self) -> None:
        conversation = self._shown
        ask_where_to_save(
            self._window,
            f"{file_name(conversation.title)}.pdf",
            lambda path: self._printing.save_pdf(path, conversation),
        )

    def _print_chat(self) -> None:
        conversation = self._shown
        ask_to_print(
            self._window,
            conversation.title,
            lambda printer: self._printing.print_on(printer, conversation),
        )

    def _export_all(self) -> None:
        chats = [one.conversation_id for one in self._core.library.listed.all]
        ask_where_to_export(
            self._window,
            words.ALL_CHATS,
            ".json",
            lambda path: self._core.exports.export_several(path, chats),
        )

    def _copy_chat(self) -> None:
        QApplication.clipboard().setText(to_markdown(self._shown))

    @property
    def _shown(self) -> Conversation:
        """The conversation on show, with the text so far of its running answers."""
        turns, conversation_id = self._core.turns, self._core.library.current
        conversation = self._core.desk.get(conversation_id)
        for reply_id in turns.replies_in(conversation_id):
            text = turns.live[reply_id]
            conversation = stop_reply(
                conversation, reply_id, content=text.content, reasoning=text.reasoning
            )
        return conversation
