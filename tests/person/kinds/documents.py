"""Actions of the random user on the documents of folders."""

from __future__ import annotations

from dataclasses import replace

from app.conversation.attachments import make_attachment
from app.conversation.folder import FolderDocument
from app.conversation.tree import has_messages
from tests.person.kinds.registry import kind
from tests.person.person import Person
from tests.person.words import some_text

MAX_DOCUMENTS = 3  # of a folder


@kind("change the documents of a folder")
def change_documents(person: Person) -> bool:
    """Add a document to a folder, or remove one."""
    folders = person.core.folders.folders
    if not folders:
        return False
    folder = person.random.choice(folders)
    documents = list(folder.documents)
    if len(documents) < MAX_DOCUMENTS:
        text = some_text(person.random, "document") * person.random.randrange(1, 20)
        file = make_attachment(f"{person.random.randrange(100)}.txt", "text", text)
        documents.append(FolderDocument(attachment=file))
    else:
        documents.pop(person.random.randrange(len(documents)))
    person.core.folders.change(replace(folder, documents=tuple(documents)))
    person.settle()
    changed = person.core.folders.get(folder.folder_id)
    assert changed is not None
    assert len(changed.documents) == len(documents)
    status = person.core.documents.status(folder.folder_id)
    assert (status is None) is not bool(documents)
    return True


@kind("begin with or without documents")
def choose_documents(person: Person) -> bool:
    before = person.conversation
    folder = person.core.folders.get(person.core.library.folder_of_current)
    if has_messages(before) or folder is None or not folder.documents:
        return False
    person.pane.draft.flush()
    person.core.chat.set_without_documents(person.current, not before.without_documents)
    person.settle()
    assert bool(person.conversation.documents) is before.without_documents
    return True
