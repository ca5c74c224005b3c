"""The draft of the chat on show, which is the text in the composer. Main thread."""

from __future__ import annotations

from PySide6.QtCore import QObject, QTimer

from app.controllers.core import Core
from app.conversation.unsent import join_texts
from app.theme.tokens import Millis
from app.widgets.composer import Composer
from engine.types import ConversationId


class ComposerDraft(QObject):
    """Shows the draft of a chat in the composer, and saves it after a pause in typing."""

    def __init__(self, core: Core, composer: Composer) -> None:
        super().__init__(composer)
        self._core = core
        self._composer = composer
        self._shown = core.library.current
        self._timer = QTimer(self, singleShot=True, interval=Millis.DRAFT_SAVE)
        self._timer.timeout.connect(self._save)
        composer.text_changed.connect(self._timer.start)
        core.undoing.sending.draft_replaced.connect(self._on_replaced)

    def show(self, conversation_id: ConversationId) -> None:
        """Show the draft of a chat. The text of the chat before can be taken back with Undo."""
        self.flush()
        before, after = self._composer.edit.text_before, self._composer.text
        if before != after:
            self._core.undoing.sending.note_typing(self._shown, before, after)
        self._shown = conversation_id
        self._show_stored()

    def flush(self) -> None:
        """Save the draft now if it has unsaved changes."""
        if self._timer.isActive():
            self._save()

    def clear(self) -> None:
        """Empty the composer after Send. The controller has saved the empty draft."""
        self._composer.set_text("")
        self._timer.stop()

    def give_back(self, text: str) -> None:
        """Put the text of a refused message back into the composer, before the text typed since."""
        if text:
            self._composer.set_text(join_texts(text, self._composer.text))

    def _save(self) -> None:
        self._timer.stop()
        self._core.chat.save_draft(self._shown, self._composer.text)

    def _show_stored(self) -> None:
        self._composer.set_text(self._core.desk.get(self._shown).draft)
        self._timer.stop()

    def _on_replaced(self, conversation_id: ConversationId) -> None:
        if conversation_id == self._shown:
            self._show_stored()
