"""The pictures of imported conversations: decoded by the extraction process, then stored."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from app.conversation.attachments import (
    AttachedPicture,
    Attachment,
    lost_picture,
    size_for,
    with_view,
)
from app.conversation.filed import FiledConversation
from app.exchange.found import FoundPicture, Unreadable
from app.extraction.extractor import Extractor
from app.extraction.refusal import Refused, RefusedFileError
from app.store.pictures import PictureFiles
from app.words import attachments as attachment_words, exchange as words
from engine.errors import DiskError


class ImportedPictures:
    """The pictures that one imported path has. Use it on one thread.

    Nothing in the imported file is trusted: each picture is decoded and stripped of its metadata,
    and its values are those that the extraction process has computed.
    """

    def __init__(self, files: PictureFiles, extractor: Extractor) -> None:
        self._files = files
        self._extractor = extractor
        # The stored pictures by their keys, and the reasons why others are not stored.
        self._known: dict[str, AttachedPicture | Refused] = {}

    def add(self, found: FoundPicture) -> None:
        """Decode a picture and store its files.

        Raises:
            DiskError: a file cannot be written.
        """
        try:
            extracted = self._extractor.decode(words.PICTURE_NAME, found.content, found.size)
        except RefusedFileError as refusal:
            self._known[found.key] = refusal.why
            return
        picture, content = extracted.attachment.picture, extracted.content
        assert picture is not None
        assert content is not None
        try:
            self._files.add(picture, content)
        except OSError as error:
            raise _disk_error(self._files, error) from error
        self._known[found.key] = picture

    def attach(self, filed: FiledConversation) -> tuple[FiledConversation, list[Unreadable]]:
        """Return a conversation with stored pictures, and the pictures that it has lost.

        Raises:
            DiskError: a file cannot be written.
        """
        conv = filed.conversation
        lost: dict[str, None] = {}  # sentences, in their order
        nodes = {
            node_id: replace(node, attachments=self._stored(node.attachments, lost))
            if node.attachments
            else node
            for node_id, node in conv.nodes.items()
        }
        draft = self._stored(conv.draft_attachments, lost)
        conv = replace(conv, nodes=nodes, draft_attachments=draft)
        unreadable = [Unreadable(name=conv.title, reason=sentence) for sentence in lost]
        return replace(filed, conversation=conv), unreadable

    def _stored(
        self, attachments: Iterable[Attachment], lost: dict[str, None]
    ) -> tuple[Attachment, ...]:
        stored: list[Attachment] = []
        for one in attachments:
            if one.picture is None:
                stored.append(one)
                continue
            found = self._in_size(one.picture)
            if isinstance(found, AttachedPicture):
                stored.append(with_view(one, found))
                continue
            stored.append(lost_picture(one.name))
            lost[
                words.picture_not_in_file(one.name)
                if found is None
                else attachment_words.refused(one.name, found.value)
            ] = None
        return tuple(stored)

    def _in_size(self, wanted: AttachedPicture) -> AttachedPicture | Refused | None:
        """Return a stored picture in the size that the imported file states."""
        found = self._known.get(wanted.original)
        if not isinstance(found, AttachedPicture):
            return found
        size = size_for(found.width, found.height, wanted.size)
        try:
            return self._files.resized(found, size, self._extractor.view)
        except RefusedFileError as refusal:
            return refusal.why
        except OSError as error:
            raise _disk_error(self._files, error) from error


def _disk_error(files: PictureFiles, error: OSError) -> DiskError:
    return DiskError(words.cannot_write(files.folder, error.strerror))
