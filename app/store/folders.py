"""The store of folders, and of the places of conversations. Use on the store thread only."""

from __future__ import annotations

from collections.abc import Mapping

from app.conversation.folder import Folder, FolderColor
from app.conversation.placement import FolderId, Placement
from app.store.database import Database
from engine.types import ConversationId

_SELECT = """
    SELECT folder_id, name, color, created_at, deleted_at, system_prompt, preset FROM folders
"""
_PUT = """
    INSERT INTO folders (folder_id, name, color, created_at, deleted_at, system_prompt, preset)
    VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (folder_id) DO UPDATE SET name = excluded.name, color = excluded.color,
        deleted_at = excluded.deleted_at, system_prompt = excluded.system_prompt,
        preset = excluded.preset
"""
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

    def load(self) -> tuple[Folder, ...]:
        return tuple(
            Folder(
                folder_id=FolderId(str(folder_id)),
                name=str(name),
                color=_color(str(color)),
                created_at=_number(created_at),
                deleted_at=None if deleted_at is None else _number(deleted_at),
                system_prompt=str(system_prompt),
                preset=str(preset),
            )
            for folder_id, name, color, created_at, deleted_at, system_prompt, preset in (
                self._database.rows(_SELECT)
            )
        )

    def save(self, folder: Folder) -> None:
        """Write a folder. An earlier value with the same id is replaced."""
        self._database.run(
            _PUT,
            (
                folder.folder_id,
                folder.name,
                folder.color,
                folder.created_at,
                folder.deleted_at,
                folder.system_prompt,
                folder.preset,
            ),
        )

    def purge(self, *, deleted_before: float) -> None:
        """Remove for good the folders that were deleted before a time. Their conversations stay."""
        self._database.run(_PURGE, (deleted_before,))

    def place(self, placements: Mapping[ConversationId, Placement]) -> None:
        """Write the places of conversations. One that is not stored is skipped."""
        with self._database.transaction():
            self._database.run_many(
                _PLACE,
                (
                    (place.pinned, place.archived, place.folder_id, conversation_id)
                    for conversation_id, place in placements.items()
                ),
            )


def _color(name: str) -> FolderColor:
    """Return a colour by its name, or gray for a colour of a newer version."""
    return FolderColor(name) if name in set(FolderColor) else FolderColor.GRAY


def _number(value: object) -> float:
    assert isinstance(value, int | float)
    return float(value)
