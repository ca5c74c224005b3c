"""The attachments of messages and drafts in the database. Use on the store thread only."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from app.conversation.attachments import (
    AttachedPicture,
    Attachment,
    lost_picture,
    make_picture,
)
from app.conversation.tree import MessageNode, NodeId
from app.store import statements
from app.store.codec import from_json_or_none, to_json
from app.store.database import Database
from engine.types import ConversationId

_DIGEST = re.compile(r"[0-9a-f]{64}")
_DRAFT = ""  # node_id of the attachments of a draft


class AttachmentRow(NamedTuple):
    """A row of the table attachments; the fields are its columns."""

    conversation_id: str
    node_id: str
    place: int
    name: str
    kind: str
    num_pages: int | None
    part: str
    source: str
    digest: str
    picture: str | None  # JSON of an AttachedPicture
    from_folder: int


class AttachmentStore:
    """The tables of attachments. A text is stored once; triggers remove it when nothing needs it.

    The caller opens the transactions.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def load(self, conversation_id: ConversationId) -> dict[str, tuple[Attachment, ...]]:
        """Return the attachments of each message, by node id. The draft has the key ""."""
        found: dict[str, tuple[Attachment, ...]] = {}
        texts: dict[str, str] = {}
        for *values, text in self._database.rows(statements.SELECT_ATTACHMENTS, (conversation_id,)):
            row = AttachmentRow._make(values)
            if row.picture is not None:
                attachment = _picture_from(row, row.picture)
            else:
                attachment = Attachment(
                    name=row.name,
                    kind=row.kind,
                    text=texts.setdefault(row.digest, str(text)),
                    digest=row.digest,
                    num_pages=row.num_pages,
                    part=row.part,
                    source=row.source,
                    from_folder=bool(row.from_folder),
                )
            found[row.node_id] = (*found.get(row.node_id, ()), attachment)
        return found

    def picture_digests(self, conversation_id: ConversationId | None = None) -> frozenset[str]:
        """Return the digests in the names of all picture files of a conversation, or of all."""
        rows = self._database.rows(statements.SELECT_PICTURES, (conversation_id,))
        return digests_in(str(row[0]) for row in rows)

    def add(self, conversation_id: ConversationId, nodes: Iterable[MessageNode]) -> None:
        """Write the attachments of messages. Those that are stored already do not change."""
        for node in nodes:
            self._insert(conversation_id, node.node_id, node.attachments)

    def set_draft(
        self, conversation_id: ConversationId, attachments: tuple[Attachment, ...]
    ) -> None:
        """Replace the attachments of a draft."""
        # Texts that stay are never without a row, so they are not removed and indexed again.
        self._database.run(statements.MOVE_DRAFT_ATTACHMENTS, (conversation_id,))
        self._insert(conversation_id, NodeId(_DRAFT), attachments)
        self._database.run(statements.DELETE_MOVED_ATTACHMENTS, (conversation_id,))

    def _insert(
        self, conversation_id: ConversationId, node_id: NodeId, files: tuple[Attachment, ...]
    ) -> None:
        texts = ((one.digest, one.text) for one in files if one.picture is None)
        self._database.run_many(statements.INSERT_ATTACHMENT_TEXT, texts)
        self._database.run_many(
            statements.INSERT_ATTACHMENT, _rows(conversation_id, node_id, files)
        )


def digests_in(pictures: Iterable[str]) -> frozenset[str]:
    """Return the digests in JSON texts of pictures, even if a text is damaged."""
    return frozenset(digest for text in pictures for digest in _DIGEST.findall(text))


def _picture_from(row: AttachmentRow, value: str) -> Attachment:
    """Return a picture, or what takes its place if the value is damaged."""
    picture = from_json_or_none(AttachedPicture, value)
    if picture is None:
        return lost_picture(row.name)
    return make_picture(row.name, picture, source=row.source)


def _rows(
    conversation_id: ConversationId, node_id: NodeId, files: tuple[Attachment, ...]
) -> Iterator[AttachmentRow]:
    for place, one in enumerate(files):
        yield AttachmentRow(
            conversation_id=conversation_id,
            node_id=node_id,
            place=place,
            name=one.name,
            kind=one.kind,
            num_pages=one.num_pages,
            part=one.part,
            source=one.source,
            digest=one.digest,
            picture=one.picture and to_json(one.picture),
            from_folder=one.from_folder,
        )
