"""Cached state of chats that are gone: forgotten after a model was loaded. Main thread.

A chat that is removed for good is forgotten by the engine at once. A process that is killed before
then leaves its state on disk, although the store has the chat no more.
"""

from __future__ import annotations

from PySide6.QtCore import QObject

from app.bridge.engine_bridge import EngineBridge
from app.bridge.store_lane import StoreLane
from app.controllers.desk import Desk
from app.conversation.tree import TERMINAL_CHAT
from app.server.known_chats import SERVER_PREFIX
from engine.clients import ModelEvent
from engine.events import ModelLoaded
from engine.types import DOCUMENTS_PREFIX, ConversationId


class Leftovers(QObject):
    """Passes the ids of all chats to the engine, once for each model of this run."""

    def __init__(self, bridge: EngineBridge, store: StoreLane, desk: Desk) -> None:
        super().__init__()
        self._engine = bridge.engine
        self._store = store
        self._desk = desk
        self._looked_at: set[str] = set()  # paths of models
        bridge.model_changed.connect(self._on_event)

    def _on_event(self, event: ModelEvent) -> None:
        if isinstance(event, ModelLoaded) and event.facts.path not in self._looked_at:
            self._looked_at.add(event.facts.path)
            # Without the ids of all chats nothing is forgotten.
            self._store.run(lambda store: store.ids(), self._forget, lambda _problem: None)

    def _forget(self, stored: frozenset[ConversationId]) -> None:
        """Forget chats that are neither stored nor open. A new chat is stored after its start.

        Chats of the server are not stored. The limit of the folder's size applies to them.
        Documents of folders are forgotten by folder_documents.py.
        """
        known = stored | self._desk.ids | {TERMINAL_CHAT}
        prefixes = (SERVER_PREFIX, DOCUMENTS_PREFIX)
        self._engine.forget_unknown(known, known_prefixes=prefixes)
