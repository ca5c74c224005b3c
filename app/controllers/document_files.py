"""The files of folders' documents: add, remove and read them again, and find those that changed.

Main thread. Files that are added at once are one action, which one undo removes. Texts are
extracted like those of attachments, one file after the other, on the same thread and by the same
process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app.bridge.jobs import Job
from app.controllers.file_openings import FileOpenings, ReadDocument
from app.controllers.folders import FoldersController
from app.conversation.attachments import MAX_DOCUMENTS
from app.conversation.folder import FolderDocument
from app.conversation.placement import FolderId
from app.viewmodels.document_lines import DocumentKey, FileState, key_of, names_of
from app.words import folder_documents as words

_Seen = tuple[int, float]  # size of a file in bytes, time of its modification in Unix seconds


@dataclass(slots=True, eq=False)
class _AddedBatch:
    """Files that the user has added at once."""

    folder_id: FolderId
    waiting: list[Path]  # not extracted yet, in order
    read: list[FolderDocument]
    share: float | None = None  # share of the first waiting file that is extracted
    job: Job | None = None


class DocumentFiles(QObject):
    """Changes the documents of folders. Each change can be undone."""

    changed = Signal(object)  # argument: FolderId whose openings or states of files have changed
    added = Signal(object, int)  # arguments: FolderId, number of files that are now documents
    # arguments: FolderId, tuple of sentences about files that were not added
    refused = Signal(object, object)

    def __init__(self, openings: FileOpenings, folders: FoldersController) -> None:
        super().__init__()
        self._openings = openings
        self._folders = folders
        self._batches: list[_AddedBatch] = []
        self._refused: dict[FolderId, list[str]] = {}
        # State of each document's file that is not as it was read.
        self._states: dict[FolderId, dict[DocumentKey, FileState]] = {}
        self._looked: set[FolderId] = set()  # folders whose files are being compared
        # Size and time of each file whose text was compared last, so that it is compared once.
        self._compared: dict[DocumentKey, _Seen] = {}
        folders.changed.connect(self._drop_states)

    def opening(self, folder_id: FolderId) -> list[tuple[Path, float | None]]:
        """Return the files that are being added, and the share of each that is extracted."""
        return [
            (path, batch.share if at == 0 else None)
            for batch in self._batches
            if batch.folder_id == folder_id
            for at, path in enumerate(batch.waiting)
        ]

    def states(self, folder_id: FolderId) -> Mapping[DocumentKey, FileState]:
        """Return the states of files that changed or are gone, by the digests of their texts."""
        return self._states.get(folder_id, {})

    def add(self, folder_id: FolderId, paths: Sequence[Path]) -> None:
        """Extract files and put them behind the documents of a folder, in this order."""
        folder = self._folders.get(folder_id)
        if folder is None or not paths:
            return
        if len(folder.documents) + len(self.opening(folder_id)) + len(paths) > MAX_DOCUMENTS:
            self.refused.emit(folder_id, (words.too_many(MAX_DOCUMENTS),))
            return
        batch = _AddedBatch(folder_id, list(paths), [])
        self._batches.append(batch)
        self._read_next(batch)

    def cancel(self, folder_id: FolderId, places: Sequence[int]) -> None:
        """Stop the openings of some files. places: their places in opening()."""
        begin = 0
        for batch in [one for one in self._batches if one.folder_id == folder_id]:
            gone = {place - begin for place in places if 0 <= place - begin < len(batch.waiting)}
            begin += len(batch.waiting)
            batch.waiting = [path for at, path in enumerate(batch.waiting) if at not in gone]
            if 0 in gone:
                if batch.job is not None:
                    batch.job.stop()
                self._go_on(batch)
        self.changed.emit(folder_id)

    def remove(self, folder_id: FolderId, places: Sequence[int]) -> None:
        """Remove documents of a folder."""
        folder = self._folders.get(folder_id)
        if folder is None or not places:
            return
        kept = tuple(one for at, one in enumerate(folder.documents) if at not in places)
        self._folders.change(replace(folder, documents=kept), words.remove(len(places)))

    def read_again(self, folder_id: FolderId, place: int) -> None:
        """Replace the text of a document by the one that its file has now."""
        folder = self._folders.get(folder_id)
        if folder is None or place >= len(folder.documents):
            return
        document = folder.documents[place]

        def replace_text(read: ReadDocument) -> None:
            if read.sentence:
                self.refused.emit(folder_id, (read.sentence,))
            if read.document is None:
                return
            if _has_same_text(read.document, document):
                self._note_same(folder_id, document, read.document)
            else:
                self._replace(folder_id, document, read.document, words.UNDO_READ_AGAIN)

        self._openings.read_document(Path(document.path), replace_text)

    def look(self, folder_id: FolderId) -> None:
        """Compare the files of a folder with the texts that were read, off the main thread.

        A file is extracted only if its size or its time of modification is another one.
        """
        folder = self._folders.get(folder_id)
        if folder is None or folder_id in self._looked:
            return
        files = tuple(one for one in folder.documents if one.path)
        if files:
            self._looked.add(folder_id)
            self._openings.run(partial(_stat_all, files), partial(self._on_looked, folder_id))

    def look_at_all(self) -> None:
        """Compare the files of all folders."""
        for folder in self._folders.folders:
            self.look(folder.folder_id)

    def _read_next(self, batch: _AddedBatch) -> None:
        self.changed.emit(batch.folder_id)
        batch.share = None
        batch.job = self._openings.read_document(
            batch.waiting[0],
            partial(self._on_read, batch, batch.waiting[0]),
            partial(self._on_progressed, batch),
        )

    def _on_progressed(self, batch: _AddedBatch, share: float) -> None:
        batch.share = share
        self.changed.emit(batch.folder_id)

    def _on_read(self, batch: _AddedBatch, path: Path, read: ReadDocument) -> None:
        if batch not in self._batches or batch.waiting[:1] != [path]:  # it was cancelled
            return
        del batch.waiting[0]
        if read.sentence:
            self._refused.setdefault(batch.folder_id, []).append(read.sentence)
        if read.document is not None:
            batch.read.append(read.document)
        self._go_on(batch)

    def _go_on(self, batch: _AddedBatch) -> None:
        """Extract the next file of a batch, or add the documents that were read."""
        if batch.waiting:
            self._read_next(batch)
            return
        self._batches.remove(batch)
        self._add(batch.folder_id, batch.read)
        self.changed.emit(batch.folder_id)
        if sentences := self._refused.pop(batch.folder_id, None):
            self.refused.emit(batch.folder_id, tuple(sentences))

    def _add(self, folder_id: FolderId, read: Sequence[FolderDocument]) -> None:
        folder = self._folders.get(folder_id)
        if folder is None:
            return
        added: list[FolderDocument] = []
        for document in read:
            if names_of([document]) <= names_of([*folder.documents, *added]):
                name = document.attachment.name
                self._refused.setdefault(folder_id, []).append(words.already(name))
            else:
                added.append(document)
        if added:
            documents = (*folder.documents, *added)
            self._folders.change(replace(folder, documents=documents), words.add(len(added)))
            self.added.emit(folder_id, len(added))

    def _replace(
        self, folder_id: FolderId, before: FolderDocument, after: FolderDocument, name: str
    ) -> None:
        folder = self._folders.get(folder_id)
        if folder is not None and before in folder.documents:
            documents = tuple(after if one == before else one for one in folder.documents)
            self._folders.change(replace(folder, documents=documents), name)

    def _on_looked(
        self, folder_id: FolderId, found: Sequence[tuple[FolderDocument, _Seen | None]]
    ) -> None:
        """Note the files that are gone, and extract those that may have another text."""
        self._looked.discard(folder_id)
        states = {key_of(one): FileState.GONE for one, seen in found if seen is None}
        earlier = self.states(folder_id)
        for document, seen in found:
            key = key_of(document)
            if seen is None:
                continue
            if earlier.get(key) is FileState.CHANGED:
                states[key] = FileState.CHANGED
            if self._compared.get(key) != seen or key not in states:
                self._compared[key] = seen
                self._openings.read_document(
                    Path(document.path), partial(self._on_compared, folder_id, document)
                )
        self._set_states(folder_id, states)

    def _on_compared(
        self, folder_id: FolderId, document: FolderDocument, read: ReadDocument
    ) -> None:
        if read.document is not None and _has_same_text(read.document, document):
            self._note_same(folder_id, document, read.document)
            return
        folder = self._folders.get(folder_id)
        if folder is not None and document in folder.documents:
            self._set_states(
                folder_id, {**self.states(folder_id), key_of(document): FileState.CHANGED}
            )

    def _note_same(
        self, folder_id: FolderId, document: FolderDocument, read: FolderDocument
    ) -> None:
        """Note the new size and time of a file whose text is the same. This is no step to undo."""
        folder = self._folders.get(folder_id)
        states = dict(self.states(folder_id))
        states.pop(key_of(document), None)
        self._set_states(folder_id, states)
        if folder is not None and document in folder.documents:
            seen = replace(document, size=read.size, modified_at=read.modified_at)
            documents = tuple(seen if one == document else one for one in folder.documents)
            self._folders.note_files(replace(folder, documents=documents))

    def _set_states(self, folder_id: FolderId, states: dict[DocumentKey, FileState]) -> None:
        if states != self._states.get(folder_id, {}):
            self._states[folder_id] = states
            self.changed.emit(folder_id)

    def _drop_states(self) -> None:
        """Forget the states of documents that were removed or read again."""
        for folder in self._folders.folders:
            keys = set(map(key_of, folder.documents))
            known = self.states(folder.folder_id)
            self._set_states(
                folder.folder_id, {key: value for key, value in known.items() if key in keys}
            )


def _has_same_text(one: FolderDocument, other: FolderDocument) -> bool:
    return one.attachment.digest == other.attachment.digest


def _stat_all(documents: Sequence[FolderDocument]) -> list[tuple[FolderDocument, _Seen | None]]:
    """Return the documents whose files are gone (None), or have another size or time.

    A file that cannot be looked at, for example without permission, is left out: it may be there.
    """
    found: list[tuple[FolderDocument, _Seen | None]] = []
    for document in documents:
        try:
            stat = Path(document.path).stat()
        except (FileNotFoundError, NotADirectoryError):
            found.append((document, None))
            continue
        except OSError:
            continue
        seen = stat.st_size, stat.st_mtime
        if seen != (document.size, document.modified_at):
            found.append((document, seen))
    return found
