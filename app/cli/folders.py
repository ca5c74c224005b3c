"""The folders of a bench script: their documents, with which chats are begun."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from app.cli.attaching import attachments_from
from app.cli.client import EngineClient
from app.cli.script import Documents, ScriptError
from app.conversation.folder import Folder, FolderDocument, documents_id, with_documents
from app.conversation.placement import FolderId
from app.conversation.prompts import messages_ahead
from app.conversation.tree import Conversation, new_conversation
from app.store.pictures import PictureFiles
from engine.questions import NextPrompt
from engine.types import ConversationId


class ScriptFolders:
    """The folders by name, and the chats that were begun in them."""

    def __init__(self) -> None:
        self._folders: dict[str, Folder] = {}
        self._ids: dict[
            str, ConversationId
        ] = {}  # id of the newest state of each folder's documents
        self._tokens: dict[str, tuple[int, ...]] = {}  # tokens of the documents of each folder
        self._begun: dict[ConversationId, tuple[int, ...]] = {}  # the same by chat

    def add(self, step: Documents, client: EngineClient, pictures: PictureFiles | None) -> None:
        """Add documents to a folder. Count them, pin their state and queue their reading.

        Raises:
            CannotAttachError: a file cannot be read.
            ScriptError: a file is a picture.
        """
        files = attachments_from(step.files, pictures)
        if any(file.picture is not None for file in files):
            raise ScriptError("a document must have text")
        folder = self._folders.get(step.folder) or Folder(
            folder_id=FolderId(step.folder), name=step.folder
        )
        added = tuple(FolderDocument(attachment=file) for file in files)
        folder = replace(folder, documents=(*folder.documents, *added))
        begun = with_documents(new_conversation(ConversationId(""), now=0.0), folder)
        prompt = NextPrompt(
            conversation_id=begun.conversation_id, messages=messages_ahead(begun), is_draft=True
        )
        name = documents_id(folder.folder_id, prompt)
        prompt = replace(prompt, conversation_id=name)
        self._folders[step.folder], self._ids[step.folder] = folder, name
        counted = client.answer(client.count_tokens(prompt))
        self._tokens[step.folder] = tuple(end - start for start, end in pairwise(counted.part_ends))
        self.pin(client)
        client.read_ahead(prompt, displaces=True)

    def pin(self, client: EngineClient) -> None:
        """Pin the state of all documents, also in an engine that was just started."""
        client.pin(frozenset(self._ids.values()))

    def begin(self, conversation: Conversation, name: str) -> Conversation:
        """Return a new chat with the documents of a folder.

        Raises:
            ScriptError: the folder has no documents, or the chat has messages.
        """
        if name not in self._folders:
            raise ScriptError(f"folder {name!r} has no documents")
        if conversation.nodes:
            raise ScriptError("only the first message of a chat can name its folder")
        self._begun[conversation.conversation_id] = self._tokens[name]
        return with_documents(conversation, self._folders[name])

    def tokens(self, conversation_id: ConversationId) -> tuple[int, ...]:
        """Return the tokens of each document with which a chat was begun."""
        return self._begun.get(conversation_id, ())
