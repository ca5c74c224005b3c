"""The changed texts of messages that are not submitted yet. Main thread only.

The editor host has the texts. They are stored with their conversation after a pause in typing, so
that a crash does not lose them: the next start puts them back into the editors.
"""

from __future__ import annotations

from PySide6.QtCore import QObject, QTimer

from app.controllers.desk import Desk
from app.controllers.listed_chats import ListedChats
from app.conversation.tree import DraftEdit, NodeId, shown_path
from app.theme.tokens import Millis
from app.widgets.transcript.editor.editor import TypedEdit
from app.widgets.transcript.editor.host import EditorHost
from app.widgets.transcript.rows.utf16 import Utf16Units
from engine.types import ConversationId


class DraftEdits(QObject):
    """Stores the texts of an editor host, and restores those of a crash."""

    def __init__(self, host: EditorHost, desk: Desk, listed: ListedChats) -> None:
        super().__init__(host)
        self._host = host
        self._desk = desk
        self._listed = listed
        self._shown: ConversationId | None = None
        self._edited_in: dict[str, ConversationId] = {}  # by the key of a message
        # Conversations whose stored edits are in the editor host
        self._restored: set[ConversationId] = set()
        self._timer = QTimer(self, singleShot=True, interval=Millis.DRAFT_SAVE)
        self._timer.timeout.connect(self.save)
        host.edited.connect(self._on_edited)

    @property
    def titles(self) -> list[str]:
        """Titles of the listed conversations with a changed message that is not submitted."""
        edited = {self._edited_in[key] for key in self._host.texts}
        return [row.title for row in self._listed.all if row.conversation_id in edited]

    def drop(self) -> None:
        """Delete the stored edits: the user has confirmed that the app quits without them."""
        self._host.edited.disconnect(self._on_edited)
        self._timer.stop()
        for conversation_id in self._restored & self._desk.ids:
            self._desk.save_edits(conversation_id, ())

    def show(self, conversation_id: ConversationId) -> NodeId | None:
        """Prepare for another conversation on show.

        Return the message in it whose editor was closed with changed text, or None.
        """
        self.restore(conversation_id)
        self._shown = conversation_id
        shown = {node.node_id for node in shown_path(self._desk.get(conversation_id))}
        kept = (NodeId(key) for key in reversed(self._host.texts) if key in shown)
        return next(kept, None)

    def restore(self, conversation_id: ConversationId) -> None:
        """Let editors open with the texts that were stored before a crash."""
        if conversation_id in self._restored:
            return
        self._restored.add(conversation_id)
        conversation = self._desk.get(conversation_id)
        for edit in conversation.draft_edits:
            node = conversation.nodes.get(edit.node_id)
            if node is not None and node.deleted_at is None:
                self._put(conversation_id, edit.node_id, edit.text)

    def put_back(self, conversation_id: ConversationId, node_id: NodeId, text: str) -> None:
        """Let the editor of a message open with the text of a refused edit."""
        self.restore(conversation_id)
        if text != self._desk.get(conversation_id).nodes[node_id].content:
            self._put(conversation_id, node_id, text)

    def note_opened(self, conversation_id: ConversationId, key: str) -> None:
        """Note to which conversation a message belongs. Call it before its editor opens."""
        self._edited_in[key] = conversation_id

    def save(self) -> None:
        """Store the edits now."""
        self._timer.stop()
        texts = self._host.texts.items()
        for conversation_id in self._restored & self._desk.ids:
            edits = (
                DraftEdit(NodeId(key), text)
                for key, text in texts
                if self._edited_in.get(key) == conversation_id
            )
            self._desk.save_edits(conversation_id, tuple(edits))

    def _put(self, conversation_id: ConversationId, node_id: NodeId, text: str) -> None:
        end = Utf16Units(text).to_qt(len(text))
        self._edited_in[node_id] = conversation_id
        self._host.restore(node_id, TypedEdit(text, end, end))

    def _on_edited(self) -> None:
        """Store the edits after a pause in typing, or now if one was submitted or cancelled."""
        texts = self._host.texts
        stored = () if self._shown is None else self._desk.get(self._shown).draft_edits
        if all(edit.node_id in texts for edit in stored):
            self._timer.start()
        else:
            self.save()
