"""Folders: create, change, delete with undo, and begin a conversation in a folder. Main thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from PySide6.QtCore import QObject, Signal

from app.bridge.store_lane import StoreLane
from app.controllers.origin import Origin
from app.controllers.presets import PresetsController
from app.controllers.undo import UNDO_KEPT_S, UndoList
from app.conversation.folder import Folder, begin_in_folder, clean_folder
from app.conversation.placement import FolderId
from app.conversation.tree import Conversation, new_conversation
from app.words import undo as words


class FoldersController(QObject):
    """The folders that the widgets show and change. Every change is saved at once."""

    changed = Signal()
    # The values with which a new conversation begins have changed: those of a folder or the model.
    defaults_changed = Signal()
    # arguments: the deleted Folder, function that undoes the deletion
    deleted = Signal(object, object)
    failed = Signal(object)  # argument: a Problem

    def __init__(
        self, store: StoreLane, presets: PresetsController, undo: UndoList, origin: Origin
    ) -> None:
        super().__init__()
        self._store = store
        self._presets = presets
        self._undo = undo
        self._origin = origin
        self._all: dict[FolderId, Folder] = {}  # deleted ones too
        self.are_loaded = False  # True once the stored folders have arrived
        self._newer: set[FolderId] = set()  # changed or removed since the last load began
        # Each deleted folder, and the function that undoes its deletion.
        self._undos: dict[FolderId, Callable[[], object]] = {}
        presets.changed.connect(self.defaults_changed)

    @property
    def folders(self) -> list[Folder]:
        """The folders that are not deleted, in order of creation."""
        return [folder for folder in self._all.values() if folder.deleted_at is None]

    @property
    def recently_deleted(self) -> list[Folder]:
        """The deleted folders that can be restored."""
        return [folder for folder in self._all.values() if folder.deleted_at is not None]

    def get(self, folder_id: FolderId | None) -> Folder | None:
        """Return a folder, or None if it is deleted or unknown."""
        folder = None if folder_id is None else self._all.get(folder_id)
        return None if folder is None or folder.deleted_at is not None else folder

    def get_any(self, folder_id: FolderId) -> Folder | None:
        """Return a folder, also if it is deleted; None if it is unknown or was removed for good."""
        return self._all.get(folder_id)

    def start(self) -> None:
        """Load the folders from the store; there are none until they arrive."""
        self._load(self._on_loaded)

    def load_again(self) -> None:
        """Load the folders again, because an import has added or restored some."""
        self._load(self._take)

    def create(self, folder: Folder) -> Folder:
        """Add a folder with the values of `folder`, under a new id. Undo deletes it again."""
        made = replace(
            folder, folder_id=FolderId(self._origin.new_id()), created_at=self._origin.now()
        )
        made = self._put(clean_folder(made))
        self._undo.add(
            words.NEW_FOLDER,
            lambda: self._mark(made.folder_id, self._origin.now()),
            redo=lambda: self._mark(made.folder_id, None),
        )
        return made

    def change(self, folder: Folder, name: str = words.CHANGE_FOLDER) -> None:
        """Replace the values of a folder. Undo brings back the earlier ones.

        name: name of the undo step.
        """
        before, folder = self.get(folder.folder_id), clean_folder(folder)
        if before is not None and folder != before:
            self._put(folder)
            self._undo.add(
                name,
                lambda: self._put_back(before),
                redo=lambda: self._put_back(folder),
            )

    def note_files(self, folder: Folder) -> None:
        """Store what is known of the files of a folder's documents. There is nothing to undo."""
        if self.get(folder.folder_id) is not None:
            self._put(folder)

    def rename(self, folder_id: FolderId, name: str) -> None:
        """Rename a folder. An empty name changes nothing."""
        folder = self.get(folder_id)
        if folder is not None and name.strip():
            self.change(replace(folder, name=name))

    def delete(self, folder_id: FolderId) -> None:
        """Delete a folder. Its conversations stay, and are in it again after an undo."""
        folder = self.get(folder_id)
        if folder is not None:
            self._mark(folder_id, self._origin.now())
            self.deleted.emit(folder, self._add_undo(folder_id))

    def restore(self, folder_id: FolderId) -> None:
        """Restore a deleted folder, with the conversations that were in it."""
        self._mark(folder_id, None)
        self._drop_undo(folder_id)

    def remove(self, folder_id: FolderId) -> None:
        """Remove a deleted folder for good. Its conversations stay."""
        folder = self._all.get(folder_id)
        if folder is None or folder.deleted_at is None:
            return
        del self._all[folder_id]
        self._newer.add(folder_id)
        self._store.run(lambda store: store.folders.remove(folder_id), None, self.failed.emit)
        self._drop_undo(folder_id)
        self.changed.emit()

    def begin_conversation(
        self, conversation: Conversation, folder_id: FolderId | None
    ) -> Conversation:
        """Apply the defaults of the model in use, then the folder's, to a new conversation."""
        begun = self._presets.begin_conversation(conversation)
        folder = self.get(folder_id)
        if folder is None:
            return begun
        return begin_in_folder(begun, folder, self._presets.value.by_name.get(folder.preset))

    def begins_alike(self, conversation: Conversation, folder_id: FolderId) -> bool:
        """Return True if a conversation without messages begins as new ones in a folder do.

        If not, for example because of another system prompt, it can't use the state of the
        documents.
        """
        begun = new_conversation(conversation.conversation_id, now=0.0)
        begun = self.begin_conversation(begun, folder_id)
        return _beginning(conversation) == _beginning(begun)

    def _add_undo(self, folder_id: FolderId) -> Callable[[], object]:
        undo = self._undo.add(
            words.DELETE_FOLDER,
            lambda: self._mark(folder_id, None),
            redo=lambda: self._mark(folder_id, self._origin.now()),
        )
        self._undos[folder_id] = undo
        return undo

    def _drop_undo(self, folder_id: FolderId) -> None:
        undo = self._undos.pop(folder_id, None)
        if undo is not None:
            self._undo.drop(undo)

    def _mark(self, folder_id: FolderId, deleted_at: float | None) -> None:
        """Delete or restore a folder, unless it was removed for good."""
        if folder_id in self._all:
            self._put(replace(self._all[folder_id], deleted_at=deleted_at))

    def _put_back(self, folder: Folder) -> None:
        """Bring back earlier values of a folder, unless it was removed for good."""
        if folder.folder_id in self._all:
            self._put(folder)

    def _put(self, folder: Folder) -> Folder:
        self._all[folder.folder_id] = folder
        self._newer.add(folder.folder_id)
        self._store.run(lambda store: store.folders.save(folder), None, self.failed.emit)
        self.changed.emit()
        self.defaults_changed.emit()
        return folder

    def _load(self, on_loaded: Callable[[tuple[Folder, ...]], None]) -> None:
        self._newer.clear()
        self._store.run(lambda store: store.folders.load(), on_loaded, self.failed.emit)

    def _on_loaded(self, stored: tuple[Folder, ...]) -> None:
        """Show the folders. Undo restores those that were deleted shortly before."""
        now = self._origin.now()
        for folder in sorted(stored, key=lambda one: one.deleted_at or 0.0):
            if folder.deleted_at is not None and now - folder.deleted_at < UNDO_KEPT_S:
                self._add_undo(folder.folder_id)
        self._take(stored)

    def _take(self, stored: tuple[Folder, ...]) -> None:
        """Replace the folders by the stored ones, except those that changed during the load."""
        loaded = {one.folder_id: one for one in stored if one.folder_id not in self._newer}
        newer = {one: self._all[one] for one in self._newer if one in self._all}
        self._all = loaded | newer
        self.are_loaded = True
        self.changed.emit()
        self.defaults_changed.emit()


def _beginning(conversation: Conversation) -> tuple[object, ...]:
    """Return the values that decide how the first prompt of a conversation begins."""
    setup = conversation.setup
    return conversation.system_prompt, setup.thinking, setup.keep_thinking, conversation.documents
