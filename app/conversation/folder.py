"""Folders of conversations, and how a new conversation in a folder begins. Pure.

A folder has no list of its conversations: each conversation names its folder (placement.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from app.conversation.attachments import MAX_DOCUMENTS, Attachment, digest_of
from app.conversation.placement import FolderId
from app.conversation.preset import Preset, apply_preset
from app.conversation.text import clean_text, one_line
from app.conversation.tree import Conversation, has_messages
from app.words import folders as words
from engine.questions import NextPrompt
from engine.types import DOCUMENTS_PREFIX, ConversationId

FOLDER_NAME_LEN = 80
_DIGEST_LEN = 16  # hexadecimal digits


class FolderColor(StrEnum):
    """The colours of a folder. A value is the name of a token in theme/tokens.py."""

    GRAY = "gray"
    BLUE = "blue"
    GREEN = "green"
    ORANGE = "orange"
    RED = "red"
    PURPLE = "purple"

    @classmethod
    def named(cls, name: str) -> FolderColor:
        """Return a colour by its name, or gray for a colour of a newer version."""
        return cls(name) if name in set(cls) else cls.GRAY


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderDocument:
    """A file that the model reads at the start of each new conversation in a folder."""

    attachment: Attachment  # has a text: no picture
    # The file at `path` when its text was read. 0 for a document that was imported.
    size: int = 0  # bytes
    modified_at: float = 0.0  # Unix seconds

    @property
    def path(self) -> str:
        """The path of the file when it was added; empty if unknown."""
        return self.attachment.source


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """A named, coloured group of conversations. New conversations in it begin with its values."""

    folder_id: FolderId
    name: str
    color: FolderColor = FolderColor.GRAY
    created_at: float = 0.0  # Unix seconds
    deleted_at: float | None = None  # Unix seconds; None if not deleted
    system_prompt: str = ""  # "" for the one of the preset
    preset: str = ""  # name of a preset; "" for the preset of the model
    # In the order in which a model reads them. A new one goes behind the others, whose cached state
    # then stays valid.
    documents: tuple[FolderDocument, ...] = ()


def clean_folder(folder: Folder) -> Folder:
    """Return a folder with a name on one line. An empty name becomes "New Folder"."""
    return replace(
        folder,
        name=one_line(folder.name, FOLDER_NAME_LEN) or words.NEW_NAME,
        system_prompt=clean_text(folder.system_prompt),
        documents=folder.documents[:MAX_DOCUMENTS],
    )


def begin_in_folder(conv: Conversation, folder: Folder, preset: Preset | None) -> Conversation:
    """Apply a folder's preset, its system prompt and its documents to a new, empty conversation."""
    begun = conv if preset is None else apply_preset(conv, preset)
    if folder.system_prompt.strip():
        begun = replace(begun, system_prompt=folder.system_prompt)
    return with_documents(begun, folder)


def documents_id(folder_id: FolderId, prompt: NextPrompt) -> ConversationId:
    """Return the id under which the engine keeps the state of a folder's documents.

    prompt: the beginning of a new conversation in the folder. Another beginning has another id.
    """
    values = (prompt.messages, prompt.thinking, prompt.keep_thinking)
    digest = digest_of(repr(values))[:_DIGEST_LEN]
    return ConversationId(f"{documents_prefix(folder_id)}{digest}")


def documents_prefix(folder_id: FolderId) -> ConversationId:
    """Return the beginning of all ids of a folder's documents, for all models."""
    return ConversationId(f"{DOCUMENTS_PREFIX}{folder_id}:")


def documents_of(conversation_id: ConversationId) -> FolderId | None:
    """Return the folder whose documents the engine keeps under an id. None: a conversation's id."""
    prefix, folder_id, *_ = f"{conversation_id}::".split(":")
    return FolderId(folder_id) if f"{prefix}:" == DOCUMENTS_PREFIX else None


def with_documents(conv: Conversation, folder: Folder | None) -> Conversation:
    """Return a conversation with the documents that its first message will have.

    A conversation that has messages keeps the documents that these have. `folder` is the one that
    the conversation is in, if any.
    """
    documents: tuple[Attachment, ...] = ()
    if folder is not None and not conv.without_documents and not has_messages(conv):
        documents = tuple(replace(one.attachment, from_folder=True) for one in folder.documents)
    return conv if documents == conv.documents else replace(conv, documents=documents)
