"""The parts of the chat pane that are on show while a chat has no messages. Main thread."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from app.controllers.core import Core
from app.conversation.tree import Conversation, has_messages
from app.theme.palette import Theme
from app.theme.tokens import Size
from app.viewmodels.document_lines import empty_chat_note
from app.viewmodels.folder_documents import DocumentState
from app.viewmodels.models import only_demo
from app.viewmodels.notes import model_note
from app.widgets.empty_state import DocumentsNote, EmptyHeading, ModelNote, Promise, RecentChats
from app.words import commands
from engine.types import ConversationId


class EmptyChat(QObject):
    """The heading, the notes and the recent chats around the composer of an empty chat."""

    choose_model_requested = Signal()  # emitted to open the model picker
    get_models_requested = Signal()  # emitted to open the Models window
    documents_requested = Signal(object)  # argument: Folder whose documents are shown

    def __init__(self, theme: Theme, core: Core, pane: QWidget) -> None:
        super().__init__(pane)
        self._core = core
        self.above = QWidget(pane)  # spacer above the heading
        self.heading = EmptyHeading(theme, pane)
        self.model_note = ModelNote(pane)
        self.documents = DocumentsNote(pane)
        self.promise = Promise(pane)
        self.recent = RecentChats(theme, pane)
        self.model_note.requested.connect(self._on_model_note)
        self.recent.chosen.connect(core.library.select)
        self.documents.toggled.connect(self._toggle_documents)
        self.documents.opened.connect(self._open_documents)
        core.documents.changed.connect(self._refresh_documents)
        core.document_files.changed.connect(self._refresh_documents)

    def set_zoom(self, zoom: float) -> None:
        for note in (self.model_note, self.documents, self.promise):
            note.setMaximumWidth(round(Size.PICKER_WIDTH * zoom))

    def refresh(self, conversation: Conversation, *, can_write: bool) -> None:
        """Show the parts if the conversation is empty, else hide them.

        can_write: False if the composer is disabled, because the chats cannot be opened
        """
        models, is_empty = self._core.models, not has_messages(conversation)
        for part in (self.above, self.recent):
            part.setVisible(is_empty)
        self.heading.setVisible(is_empty and can_write)
        note = model_note(models.status, models.cards) if is_empty else ""
        button = commands.GET_MODELS if only_demo(models.cards) else commands.CHOOSE_MODEL
        self.model_note.show_text(note, button)
        self.refresh_list(conversation.conversation_id, can_write=can_write)

    def refresh_list(self, shown: ConversationId, *, can_write: bool) -> None:
        """Update what depends on the folders and the list of chats."""
        library, is_empty = self._core.library, not self.recent.isHidden()
        folder = self._core.folders.get(library.folder_of_current)
        self.heading.show_folder("" if folder is None else folder.name)
        self._refresh_documents()
        others = [one for one in library.listed.unarchived if one.conversation_id != shown]
        self.recent.show_recent(others if is_empty else ())
        self.promise.setVisible(is_empty and not others and can_write)

    def _refresh_documents(self) -> None:
        """Show the documents with which the empty chat on show begins, or would begin."""
        core, library = self._core, self._core.library
        folder = core.folders.get(library.folder_of_current)
        conversation = core.desk.get(library.current)
        if folder is None or not folder.documents or has_messages(conversation):
            self.documents.show_text("", is_without=False)
            return
        status = core.documents.status(folder.folder_id)
        is_too_long = status is not None and status.state is DocumentState.TOO_LONG
        if not is_too_long and not core.folders.begins_alike(conversation, folder.folder_id):
            status = None  # it is true of other chats only
        is_without = conversation.without_documents
        files = core.document_files.states(folder.folder_id).values()
        text = empty_chat_note(
            folder, status, core.models.status.name, files, is_without=is_without
        )
        self.documents.show_text(text, is_without=is_without)

    def _toggle_documents(self) -> None:
        shown = self._core.library.current
        without = self._core.desk.get(shown).without_documents
        self._core.chat.set_without_documents(shown, not without)
        self._refresh_documents()

    def _open_documents(self) -> None:
        folder = self._core.folders.get(self._core.library.folder_of_current)
        if folder is not None:
            self.documents_requested.emit(folder)

    def _on_model_note(self) -> None:
        if only_demo(self._core.models.cards):
            self.get_models_requested.emit()
        else:
            self.choose_model_requested.emit()
