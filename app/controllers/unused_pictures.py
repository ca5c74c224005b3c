"""Deletes the files of pictures that no message, draft or backup names any more. Main thread.

This happens once after each start, and after chats were removed for good. A picture that the user
has taken out of a draft can come back by an undo, which only this run remembers. So the sweep after
the start keeps what the database named at the start, and a removal takes only pictures of the
removed chats.
"""

from __future__ import annotations

import logging

from PySide6.QtCore import QObject, QTimer

from app.bridge.store_lane import StoreLane
from app.controllers.deleted_chats import DeletedChats
from app.store.backups import pictures_in_backups
from app.store.conversations import ConversationStore
from app.store.pictures import PictureFiles
from app.store.place import DataPlace

log = logging.getLogger(__name__)

LOOK_MS = 60_000  # time from the start until the sweep


class UnusedPictures(QObject):
    """Sweeps the folder of pictures on the store thread, while no other call waits."""

    def __init__(
        self, files: PictureFiles, place: DataPlace, store: StoreLane, deleted: DeletedChats
    ) -> None:
        super().__init__()
        self._files = files
        self._place = place
        self._store = store
        self._used_at_start: frozenset[str] = frozenset()
        self._is_rescued = False
        self._timer = QTimer(self, singleShot=True, interval=LOOK_MS)
        self._timer.timeout.connect(self.sweep)
        store.opened.connect(self._note_start)
        store.rescued.connect(self._note_rescue)
        deleted.left_pictures.connect(self._remove)

    def stop(self) -> None:
        self._timer.stop()

    def sweep(self) -> None:
        """Delete all files that nothing names."""
        if self._is_rescued:
            return  # the user may still get chats back from the damaged file
        used = self._used_at_start
        self._store.run_aside(lambda store: self._swept(store, used, None), None, self._on_failed)

    def _note_start(self) -> None:
        def note(used: frozenset[str]) -> None:
            self._used_at_start = used
            self._timer.start()

        self._store.run(lambda store: store.picture_digests(), note, self._on_failed)

    def _note_rescue(self, _problem: object) -> None:
        self._is_rescued = True

    def _remove(self, digests: frozenset[str]) -> None:
        """Delete the files of removed chats, unless something else names them."""
        self._store.run_aside(
            lambda store: self._swept(store, frozenset(), digests), None, self._on_failed
        )

    def _swept(
        self, store: ConversationStore, used: frozenset[str], among: frozenset[str] | None
    ) -> bool:
        """Delete unused files, on the store thread."""
        in_backups = pictures_in_backups(self._place.database)
        if in_backups is not None:
            used = used | in_backups | store.picture_digests()
            number = self._files.remove_unused(used, among=among)
            log.info("removed %d files of pictures that nothing names", number)
        return True

    def _on_failed(self, problem: object) -> None:
        log.warning("the files of pictures were not swept: %s", problem)
