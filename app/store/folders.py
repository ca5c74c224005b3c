"""The store of folders, and of the places of conversations. Use on the store thread only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from app.conversation.filed import FiledConversation
from app.conversation.folder import Folder, FolderColor
from app.conversation.placement import FolderId, Placement
from app.conversation.tree import Conversation
from app.store.database import Database
from app.store.folder_documents import FolderDocumentStore
from engine.types import ConversationId

_SELECT = """
    SELECT folder_id, name, color, created_at, deleted_at, system_prompt, preset FROM folders
"""
_SELECT_FILED = """
    SELECT pinned, archived, conversations.folder_id, folders.folder_id, name, color,
        folders.created_at, folders.deleted_at, folders.system_prompt, preset
    FROM conversations LEFT JOIN folders
        ON folders.folder_id = conversations.folder_id AND folders.deleted_at IS NULL
    WHERE conversation_id = ?
"""
_PUT = """
    INSERT INTO folders (folder_id, name, color, created_at, deleted_at, system_prompt, preset)
    VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (folder_id) DO UPDATE SET name = excluded.name, color = excluded.color,
        deleted_at = excluded.deleted_at, system_prompt = excluded.system_prompt,
        preset = excluded.preset
"""
_ADD = """
    INSERT INTO folders (folder_id, name, color, created_at, deleted_at, system_prompt, preset)
    VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (folder_id) DO UPDATE SET deleted_at = NULL
"""
_HAS = "SELECT 1 FROM folders WHERE folder_id = ?"
_REMOVE = "DELETE FROM folders WHERE folder_id = ? AND deleted_at IS NOT NULL"
_PURGE = "DELETE FROM folders WHERE deleted_at <= ?"
_PLACE = """
    UPDATE conversations SET pinned = ?, archived = ?, folder_id = ? WHERE conversation_id = ?
"""


class FolderStore:
    """All folders of a data folder, deleted ones too, and the places of the conversations.

    Each method is one transaction. It raises StoreError and changes nothing if the database cannot
    be used.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._documents = FolderDocumentStore(database)

    def load(self) -> tuple[Folder, ...]:
        documents = self._documents.load()
        folders = map(_folder, self._database.rows(_SELECT))
        return tuple(replace(one, documents=documents.get(one.folder_id, ())) for one in folders)

    def save(self, folder: Folder) -> None:
        """Write a folder. An earlier value with the same id is replaced."""
        with self._database.transaction():
            self._database.run(_PUT, _row(folder))
            self._documents.set(folder.folder_id, folder.documents)

    def remove(self, folder_id: FolderId) -> None:
        """Remove a folder for good, if it is deleted. Its conversations stay."""
        self._database.run(_REMOVE, (folder_id,))

    def purge(self, *, deleted_before: float) -> None:
        """Remove for good the folders that were deleted before a time. Their conversations stay."""
        self._database.run(_PURGE, (deleted_before,))

    def place(self, placements: Mapping[ConversationId, Placement]) -> None:
        """Write the places of conversations. One that is not stored is skipped."""
        with self._database.transaction():
            self._place(placements)

    def filed(self, conv: Conversation) -> FiledConversation:
        """Return a stored conversation with its place in the list and its folder."""
        ((pinned, archived, folder_id, *row),) = self._database.rows(
            _SELECT_FILED, (conv.conversation_id,)
        )
        folder = None if row[0] is None else _folder(row)
        if folder is not None:
            documents = self._documents.load(folder.folder_id).get(folder.folder_id, ())
            folder = replace(folder, documents=documents)
        return FiledConversation(
            conversation=conv,
            placement=Placement(
                pinned=bool(pinned),
                archived=bool(archived),
                folder_id=None if folder_id is None else FolderId(str(folder_id)),
            ),
            folder=folder,
        )

    def file(self, filed: FiledConversation) -> None:
        """Write the place of a stored conversation, and add its folder or restore it.

        A stored folder keeps its name and its other values. Call this method in a transaction.
        """
        folder = filed.folder
        if folder is not None:
            is_stored = bool(self._database.rows(_HAS, (folder.folder_id,)))
            self._database.run(_ADD, _row(folder))
            if not is_stored:
                self._documents.set(folder.folder_id, folder.documents)
        self._place({filed.conversation.conversation_id: filed.placement})

    def _place(self, placements: Mapping[ConversationId, Placement]) -> None:
        self._database.run_many(
            _PLACE,
            (
                (place.pinned, place.archived, place.folder_id, conversation_id)
                for conversation_id, place in placements.items()
            ),
        )


def _row(folder: Folder) -> tuple[str | float | None, ...]:
    return (
        folder.folder_id,
        folder.name,
        folder.color,
        folder.created_at,
        folder.deleted_at,
        folder.system_prompt,
        folder.preset,
    )


def _folder(row: Sequence[object]) -> Folder:
    """Return the folder of a row, without its documents."""
    folder_id, name, color, created_at, deleted_at, system_prompt, preset = row
    return Folder(
        folder_id=FolderId(str(folder_id)),
        name=str(name),
        color=FolderColor.named(str(color)),
        created_at=_number(created_at),
        deleted_at=None if deleted_at is None else _number(deleted_at),
        system_prompt=str(system_prompt),
        preset=str(preset),
    )


def _number(value: object) -> float:
    assert isinstance(value, int | float)
    return float(value)
