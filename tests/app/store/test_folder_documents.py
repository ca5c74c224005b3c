"""The documents of folders in the database: their texts are stored once, and removed with the last user."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from app.conversation.attachments import make_attachment
from app.conversation.filed import FiledConversation
from app.conversation.folder import Folder, FolderDocument
from app.conversation.placement import FolderId, Placement
from app.conversation.tree import new_conversation, set_draft_attachments
from app.exchange.own_json import from_value, to_json
from app.store.conversations import ConversationStore, open_store
from app.store.merging import merge
from engine.types import ConversationId


def document(name: str, text: str) -> FolderDocument:
    file = make_attachment(name, "text", text, source=f"/papers/{name}")
    return FolderDocument(attachment=file, size=len(text), modified_at=7.5)


ONE, TWO, THREE = document("1.txt", "one"), document("2.txt", "two"), document("3.txt", "three")
WORK = Folder(folder_id=FolderId("F"), name="Work", documents=(ONE, TWO))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ConversationStore]:
    with closing(open_store(tmp_path / "conversations.db", now=0.0).store) as opened:
        yield opened


def texts(folder: Path) -> list[str]:
    with closing(sqlite3.connect(folder / "conversations.db")) as reader:
        rows = reader.execute("SELECT text FROM attachment_texts ORDER BY text_number")
        return [str(row[0]) for row in rows]


def test_documents_are_stored_in_their_order(store: ConversationStore, tmp_path: Path) -> None:
    store.folders.save(WORK)
    assert store.folders.load() == (WORK,)
    changed = replace(WORK, documents=(TWO, THREE))
    store.folders.save(changed)
    assert store.folders.load() == (changed,)
    assert texts(tmp_path) == ["two", "three"]


def test_a_text_stays_while_a_chat_or_a_folder_has_it(
    store: ConversationStore, tmp_path: Path
) -> None:
    store.folders.save(WORK)
    conv = new_conversation(ConversationId("A"), now=1.0)
    store.create(set_draft_attachments(conv, (replace(ONE.attachment, from_folder=True),)))
    store.folders.save(replace(WORK, documents=(TWO,)))
    assert texts(tmp_path) == ["one", "two"]
    assert store.load(ConversationId("A")).draft_attachments[0].from_folder
    store.delete(ConversationId("A"), now=2.0)
    store.remove(ConversationId("A"))
    assert texts(tmp_path) == ["two"]
    store.folders.save(replace(WORK, documents=(TWO,), deleted_at=3.0))
    store.folders.remove(WORK.folder_id)
    assert texts(tmp_path) == []


def test_an_exported_folder_brings_its_documents(store: ConversationStore) -> None:
    conv = replace(new_conversation(ConversationId("A"), now=1.0), without_documents=True)
    place = Placement(folder_id=WORK.folder_id)
    exported = to_json(FiledConversation(conversation=conv, placement=place, folder=WORK))
    found = from_value(json.loads(exported))
    merge(store, found)
    (folder,) = store.folders.load()
    assert [one.attachment.text for one in folder.documents] == ["one", "two"]
    assert [one.path for one in folder.documents] == ["", ""]
    assert store.load(ConversationId("A")).without_documents
    # A stored folder keeps its own documents.
    store.folders.save(replace(folder, documents=(THREE,)))
    other = replace(conv, conversation_id=ConversationId("B"))
    merge(store, FiledConversation(conversation=other, placement=place, folder=WORK))
    assert store.folders.load()[0].documents == (THREE,)
    assert store.load_filed(ConversationId("B")).folder == replace(folder, documents=(THREE,))
