"""The documents of folders: counted, read in idle time and kept ready for new chats. Main thread.

The engine keeps the state of a folder's documents under an id that no conversation has:

    documents:<folder>:<digest of the messages with which a new chat in the folder begins>

A new chat restores the state, because its prompt begins with the same tokens. If the documents,
their order or the system prompt change, the id changes too. The engine then reads only what follows
the common beginning, and forgets the state under the earlier id once all is read.

    count     once for each id and model: the tokens of each document
    report    MemoryMap.report: the tokens in memory or on disk, and ids that are out of date
    read      ReadAhead, if tokens are lacking. The command is sent once, and again after a load, a
              request or a change of the settings, because these may have evicted state. State that
              is complete on disk is only fetched, if memory is free.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from PySide6.QtCore import QObject, QTimer, Signal

from app.bridge.engine_bridge import EngineBridge, IdleEvent
from app.controllers.folders import FoldersController
from app.controllers.memory_map import MemoryMap
from app.controllers.models import ModelsController
from app.controllers.origin import Origin
from app.controllers.preferences import Preferences
from app.controllers.reading_rate import ReadingRate
from app.controllers.requests import is_same_prompt, next_turn
from app.conversation.folder import Folder, documents_id, documents_of, documents_prefix
from app.conversation.placement import FolderId
from app.conversation.tree import new_conversation
from app.viewmodels.folder_documents import (
    DocumentState,
    FolderDocumentsStatus,
    Held,
    documents_status,
    state_bytes,
)
from engine.clients import ModelEvent, RequestEvent
from engine.commands import Asked
from engine.events import IdleWorking, ModelFacts, ModelLoaded, RequestFailed, RequestFinished
from engine.questions import NextPrompt, TokensCounted
from engine.types import ConversationId

# Time for which the state of a deleted folder, or of documents that have changed, is kept: until
# then, an undo needs no new reading.
FORGET_MS = 60_000


@dataclass(slots=True)
class _Documents:
    """The documents of a folder, for the model in use."""

    turn: NextPrompt  # the beginning of a new chat; no messages if they are far too long
    asked: Asked[TokensCounted] | None = None
    counted: TokensCounted | None = None
    is_sent: bool = False  # True if the engine need not get the command to read again
    is_fetched: bool = False  # True if the engine need not get the command to fetch again


class FolderDocuments(QObject):
    """Counts the documents of all folders and lets the engine read them ahead."""

    changed = Signal(object)  # argument: FolderId whose status has changed
    ids_changed = Signal()

    def __init__(  # noqa: PLR0913 (the state of the documents depends on each)
        self,
        bridge: EngineBridge,
        folders: FoldersController,
        models: ModelsController,
        preferences: Preferences,
        reports: MemoryMap,
        rate: ReadingRate,
        origin: Origin,
    ) -> None:
        super().__init__()
        self._bridge = bridge
        self._engine = bridge.engine
        self._folders = folders
        self._models = models
        self._preferences = preferences
        self._reports = reports
        self._rate = rate
        self._origin = origin
        self._facts: ModelFacts | None = None
        self._known: dict[FolderId, _Documents] = {}
        self._held: dict[ConversationId, Held] | None = None  # None: not known for this model
        self._budget = 0  # bytes of all cached state in memory at most; 0 before the first report
        self._reading: IdleWorking | None = None  # of documents
        # Time at which an id ceased to be the one of its folder. In Origin.now().
        self._left: dict[ConversationId, float] = {}
        self._forgetting = QTimer(self, singleShot=True, interval=FORGET_MS)
        self._forgetting.timeout.connect(self._forget_outdated)
        self._is_over = False  # True once the app is closing
        # The pinned ids: those of the folders, and earlier ones until they are forgotten.
        self.ids: frozenset[ConversationId] = frozenset()
        folders.defaults_changed.connect(self._refresh)
        models.status_changed.connect(self._on_status_changed)
        preferences.changed.connect(self._on_preferences_changed)
        reports.changed.connect(self._on_reported)
        reports.forgotten.connect(self._on_forgotten)
        bridge.model_changed.connect(self._on_model_changed)
        bridge.request_changed.connect(self._on_request_changed)
        bridge.idle_changed.connect(self._on_idle_changed)

    def stop(self) -> None:
        """Send no more commands, because the app is closing. Idempotent."""
        self._is_over = True
        self._forgetting.stop()

    def status(self, folder_id: FolderId) -> FolderDocumentsStatus | None:
        """Return the state of a folder's documents; None if the folder has none or is deleted."""
        folder = self._folders.get(folder_id)
        if folder is None or not folder.documents:
            return None
        known, settings = self._known.get(folder_id), self._preferences.value
        reading = self._reading_of(known)
        start, end = (0, 0) if reading is None else _span(reading)
        time = None if reading is None else self._rate.time(start, end)
        return documents_status(
            folder,
            facts=self._facts,
            counted=None if known is None else known.counted,
            is_far_too_long=known is not None and not known.turn.messages,
            held=self._held_of(known),
            budget_bytes=self._budget_for(folder_id),
            num_reading=None if reading is None else start,
            seconds_left=None if time is None else time.seconds,
            is_paused=folder_id in settings.paused_documents,
            is_off=not settings.read_ahead,
        )

    def pause(self, folder_id: FolderId, paused: bool) -> None:  # noqa: FBT001 (the value)
        """Pause the reading of a folder's documents in idle time, or continue it."""
        others = {one.folder_id for one in self._folders.folders if one.documents} - {folder_id}
        kept = others & set(self._preferences.value.paused_documents)
        self._preferences.change(
            paused_documents=tuple(sorted(kept | {folder_id} if paused else kept))
        )

    def expect(self, turn: NextPrompt) -> bool:
        """Read documents soon, because a new chat that begins with them is on show.

        Return True if the chat begins with nothing else: it needs no reading of its own, even if
        paused.
        """
        for folder_id, documents in self._known.items():
            if turn.messages and is_same_prompt(turn, documents.turn):
                status = self.status(folder_id)
                if status is not None and status.state is DocumentState.NO_MEMORY:
                    return False
                if self._reading_of(documents) is None:
                    documents.is_sent = documents.is_fetched = False
                    self._read(folder_id)
                return True
        return False

    # Beginnings of new chats

    def _refresh(self) -> None:
        """Count the documents that have changed, and drop what is known about the others."""
        facts = self._facts
        before, self._known = self._known, {}
        for folder in self._folders.folders:
            if folder.documents and facts is not None:
                self._known[folder.folder_id] = self._updated(folder, before, facts)
        for folder_id, documents in before.items():
            if self._known.get(folder_id) is not documents:
                self._withdraw(documents)
        self._note_ids()
        for folder_id, documents in self._known.items():
            if documents is not before.get(folder_id):
                self._count(folder_id, documents)
        for folder_id in {*before, *self._known, *(one.folder_id for one in self._folders.folders)}:
            self.changed.emit(folder_id)
        if not self._is_over:
            self._forgetting.start()

    def _updated(
        self, folder: Folder, before: dict[FolderId, _Documents], facts: ModelFacts
    ) -> _Documents:
        """Return what is known about the documents of a folder, or a new value if they changed."""
        conversation = self._folders.begin_conversation(
            new_conversation(ConversationId(""), now=0.0), folder.folder_id
        )
        turn = next_turn(conversation, facts)
        name = documents_id(folder.folder_id, turn)
        known = before.get(folder.folder_id)
        if known is not None and known.turn.conversation_id == name:
            return known
        return _Documents(replace(turn, conversation_id=name))

    def _count(self, folder_id: FolderId, documents: _Documents) -> None:
        if documents.turn.messages and not self._is_over:
            asked = documents.asked = self._engine.count_tokens(documents.turn)
            self._bridge.when_answered(asked, partial(self._on_counted, folder_id, documents))

    def _on_counted(
        self, folder_id: FolderId, documents: _Documents, counted: TokensCounted
    ) -> None:
        documents.asked, documents.counted = None, counted
        if self._known.get(folder_id) is documents:
            self._read(folder_id)
            self.changed.emit(folder_id)

    def _withdraw(self, documents: _Documents) -> None:
        """Withdraw the question and the read-ahead of documents that have changed or gone."""
        if documents.asked is not None:
            self._engine.withdraw(documents.asked)
        if documents.is_sent and not self._is_over:
            self._engine.read_ahead(NextPrompt(conversation_id=documents.turn.conversation_id))

    # Reading

    def _read(self, folder_id: FolderId) -> None:
        """Let the engine read what is lacking, or withdraw the command if the user paused it."""
        documents, status = self._known[folder_id], self.status(folder_id)
        if self._is_over or self._held is None or documents.counted is None or status is None:
            return
        if status.is_paused:
            self._withdraw(documents)
            documents.is_sent = False
        elif not documents.is_fetched and status.state is DocumentState.ON_DISK:
            # Fetch it once: the user may move the state to disk after that.
            documents.is_fetched = True
            self._engine.read_ahead(documents.turn, fetch_only=True)
        elif not documents.is_sent and status.state is DocumentState.WAITING:
            documents.is_sent = True
            self._engine.read_ahead(documents.turn, displaces=True)

    def _read_all(self) -> None:
        for folder_id in self._known:
            self._read(folder_id)

    def _budget_for(self, folder_id: FolderId) -> int:
        """Return the bytes in memory that the documents of a folder may use. 0: not known yet.

        Without a disk, they leave room for those of other folders: else folders that do not fit
        together would displace each other, and all would be read again after each answer.
        """
        if self._facts is None or self._budget == 0 or self._preferences.value.keep_on_disk:
            return self._budget
        others = sum(
            state_bytes(documents.counted.num_tokens, self._facts)
            for other, documents in self._known.items()
            if other != folder_id
            and documents.counted is not None
            and (
                documents.is_sent
                or self._held_of(documents).memory_tokens >= documents.counted.num_tokens
            )
        )
        return max(1, self._budget - others)

    def _held_of(self, documents: _Documents | None) -> Held:
        if documents is None or self._held is None:
            return Held()
        return self._held.get(documents.turn.conversation_id, Held())

    def _reading_of(self, documents: _Documents | None) -> IdleWorking | None:
        name = None if documents is None else documents.turn.conversation_id
        is_of = self._reading is not None and self._reading.conversation_id == name
        return self._reading if is_of else None

    # Ids

    def _note_ids(self) -> None:
        if self._facts is None:
            return
        current = {documents.turn.conversation_id for documents in self._known.values()}
        now = self._origin.now()
        self._left = {one: self._left.get(one, now) for one in self.ids - current}
        self._set_ids(self.ids | current)

    def _set_ids(self, ids: frozenset[ConversationId]) -> None:
        if ids != self.ids:
            self.ids = ids
            self.ids_changed.emit()

    def _forget_outdated(self) -> None:
        """Forget state that no new chat will use.

        The state of documents that have changed is kept until the present ones are ready, because
        they have the beginning in common.
        """
        if self._is_over or self._held is None or not self._folders.are_loaded:
            return
        outdated = {one for one in self._held.keys() | self.ids if self._is_outdated(one)}
        # Other models keep on disk what they have read. An id with no state of this model may be
        # theirs.
        gone = {documents_of(one) for one in outdated if self._is_gone(one)}
        forgotten = {one for one in outdated if one in self._held or documents_of(one) in gone}
        # The state of all models is forgotten on disk if a folder is gone.
        prefixes = {documents_prefix(folder_id) for folder_id in gone if folder_id is not None}
        for name in forgotten | prefixes:
            self._engine.forget(name)
        if outdated:
            self._held = {name: held for name, held in self._held.items() if name not in outdated}
            self._set_ids(self.ids - outdated)
        if forgotten:
            self._reports.ask()

    def _is_gone(self, name: ConversationId) -> bool:
        """Return True if the folder of an id has no documents any more, or is deleted."""
        folder_id = documents_of(name)
        folder = None if folder_id is None else self._folders.get(folder_id)
        return folder is None or not folder.documents

    def _is_outdated(self, name: ConversationId) -> bool:
        folder_id = documents_of(name)
        if folder_id is None or self._folders.get_any(folder_id) is None:
            return True
        known = self._known.get(folder_id)
        if known is not None and known.turn.conversation_id == name:
            return False
        if name in self._left and self._origin.now() - self._left[name] < FORGET_MS / 1000:
            return False
        status = self.status(folder_id)
        return status is None or status.state in _READY

    # Events

    def _on_status_changed(self) -> None:
        facts = self._models.status.facts
        if facts is not self._facts:
            self._facts, self._held, self._reading = facts, None, None
            before, self._known = self._known, {}
            for documents in before.values():
                self._withdraw(documents)
            self._refresh()

    def _on_model_changed(self, event: ModelEvent) -> None:
        """Send all commands again: a model that was loaded has no state in memory."""
        if isinstance(event, ModelLoaded):
            self._held = None
            for documents in self._known.values():
                documents.is_sent = documents.is_fetched = False

    def _on_preferences_changed(self) -> None:
        self._read_all()
        for folder_id in self._known:
            self.changed.emit(folder_id)

    def _on_request_changed(self, event: RequestEvent) -> None:
        if isinstance(event, (RequestFinished, RequestFailed)):
            self._send_again()

    def _send_again(self) -> None:
        """Let the next report send the commands that are needed then."""
        for documents in self._known.values():
            documents.is_sent = False

    def _on_reported(self) -> None:
        report = self._reports.report
        if report is None or self._facts is None:
            return
        self._budget = report.budget_bytes
        self._held = {
            one.conversation_id: Held(one.memory_tokens, one.disk_tokens)
            for one in report.chats
            if documents_of(one.conversation_id) is not None
        }
        self._forget_outdated()
        self._read_all()
        for folder_id in self._known:
            self.changed.emit(folder_id)

    def _on_forgotten(self, names: tuple[ConversationId, ...]) -> None:
        """Pause documents whose state the user has forgotten. They would be read again at once."""
        for folder_id, documents in list(self._known.items()):
            if documents.turn.conversation_id in names:
                self.pause(folder_id, True)

    def _on_idle_changed(self, event: IdleEvent) -> None:
        before = self._reading
        name = event.conversation_id if isinstance(event, IdleWorking) else None
        is_ours = name is not None and documents_of(name) is not None
        self._reading = event if isinstance(event, IdleWorking) and is_ours else None
        for one in {_folder_of(before), _folder_of(self._reading)} - {None}:
            self.changed.emit(one)


_READY = (DocumentState.IN_MEMORY, DocumentState.ON_DISK)


def _folder_of(event: IdleWorking | None) -> FolderId | None:
    name = None if event is None else event.conversation_id
    return None if name is None else documents_of(name)


def _span(event: IdleWorking) -> tuple[int, int]:
    """Return the positions of the next token to feed and of the end."""
    return event.num_cached + event.done, event.num_cached + event.total
