"""The documents of folders in the database. Use on the store thread only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from app.conversation.attachments import Attachment
from app.conversation.folder import FolderDocument
from app.conversation.placement import FolderId
from app.store import statements
from app.store.database import Database


class DocumentRow(NamedTuple):
    """A row of the table folder_documents; the fields are its columns."""

    folder_id: str
    place: int
    name: str
    kind: str
    num_pages: int | None
    part: str
    source: str
    digest: str
    size: int
    modified_at: float


class FolderDocumentStore:
    """The table of documents. Triggers remove a text that no attachment and no document has.

    The caller opens the transactions.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def load(self, folder_id: FolderId | None = None) -> dict[str, tuple[FolderDocument, ...]]:
        """Return the documents of a folder, or of all, by folder id. Omit those without text."""
        found: dict[str, tuple[FolderDocument, ...]] = {}
        texts: dict[str, str] = {}
        for *values, text in self._database.rows(statements.SELECT_DOCUMENTS, (folder_id,)):
            row = DocumentRow._make(values)
            document = _document(row, texts.setdefault(row.digest, str(text)))
            found[row.folder_id] = (*found.get(row.folder_id, ()), document)
        return found

    def set(self, folder_id: FolderId, documents: tuple[FolderDocument, ...]) -> None:
        """Replace the documents of a stored folder. Equal ones are not written again."""
        rows = list(_rows(folder_id, documents))
        stored = self._database.rows(statements.SELECT_DOCUMENT_ROWS, (folder_id,))
        if rows == [DocumentRow._make(row) for row in stored]:
            return
        # Texts that stay are never without a row, so they are not removed and indexed again.
        self._database.run(statements.MOVE_DOCUMENTS, (folder_id,))
        texts = ((one.attachment.digest, one.attachment.text) for one in documents)
        self._database.run_many(statements.INSERT_ATTACHMENT_TEXT, texts)
        self._database.run_many(statements.INSERT_DOCUMENT, iter(rows))
        self._database.run(statements.DELETE_MOVED_DOCUMENTS, (folder_id,))


def _document(row: DocumentRow, text: str) -> FolderDocument:
    attachment = Attachment(
        name=row.name,
        kind=row.kind,
        text=text,
        digest=row.digest,
        num_pages=row.num_pages,
        part=row.part,
        source=row.source,
    )
    return FolderDocument(attachment=attachment, size=row.size, modified_at=row.modified_at)


def _rows(folder_id: FolderId, documents: tuple[FolderDocument, ...]) -> Iterator[DocumentRow]:
    for place, document in enumerate(documents):
        file = document.attachment
        assert file.picture is None
        yield DocumentRow(
            folder_id=folder_id,
            place=place,
            name=file.name,
            kind=file.kind,
            num_pages=file.num_pages,
            part=file.part,
            source=file.source,
            digest=file.digest,
            size=document.size,
            modified_at=document.modified_at,
        )
