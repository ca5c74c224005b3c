"""Lines about the documents of a folder: in its sheet, in its row, and in an empty chat. No Qt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from itertools import zip_longest

from app.conversation.folder import Folder, FolderDocument
from app.viewmodels import figures
from app.viewmodels.chat_state import ChatState
from app.viewmodels.folder_documents import DocumentState, DocumentStatus, FolderDocumentsStatus
from app.words import folder_documents as words, state as state_words

_STATES = {
    DocumentState.NO_MODEL: "",
    DocumentState.WAITING: words.WAITING,
    DocumentState.READING: words.READING,
    DocumentState.IN_MEMORY: words.READY,
    DocumentState.ON_DISK: words.ON_DISK,
    DocumentState.TOO_LONG: words.NO_ROOM,
    DocumentState.NO_MEMORY: "",
}
_ALL_STATES = {
    DocumentState.NO_MODEL: words.NO_MODEL,
    DocumentState.IN_MEMORY: words.READY,
    DocumentState.ON_DISK: words.ON_DISK,
    DocumentState.NO_MEMORY: words.NO_MEMORY,
}
_MARKS = {DocumentState.IN_MEMORY: ChatState.MEMORY, DocumentState.ON_DISK: ChatState.DISK}


DocumentKey = tuple[str, str]  # path of the file, and digest of the text that was read


class FileState(Enum):
    """The file of a document, compared with the text that was read."""

    CHANGED = auto()
    GONE = auto()


@dataclass(frozen=True, slots=True)
class DocumentLine:
    """A row of the list of documents."""

    name: str
    details: str
    file_state: FileState | None = None
    is_opening: bool = False

    @property
    def spoken(self) -> str:
        return words.spoken(self.name, self.details)


def document_rows(
    folder: Folder,
    status: FolderDocumentsStatus | None,
    files: Mapping[DocumentKey, FileState],
) -> list[DocumentLine]:
    """Return the rows of the documents, in the order in which the model reads them.

    Args:
        folder: the folder.
        status: None if it is not known yet.
        files: states of files that are not as they were read.
    """
    known = () if status is None else status.documents
    return [
        _row(document, found, files)
        for document, found in zip_longest(folder.documents, known[: len(folder.documents)])
    ]


def opening_row(name: str, share: float | None) -> DocumentLine:
    """Return the row of a file whose text is being extracted. share: None if unknown."""
    percent = "" if not share else f" · {figures.percent(share)}"
    return DocumentLine(name, state_words.line([f"{words.OPENING}{percent}"]), is_opening=True)


def _row(
    document: FolderDocument,
    found: DocumentStatus | None,
    files: Mapping[DocumentKey, FileState],
) -> DocumentLine:
    file = document.attachment
    file_state = files.get(key_of(document))
    parts = [file.part]
    if found is not None:
        parts += [words.num_tokens(found.num_tokens), _STATES[found.state]]
    if file_state is not None:
        parts.append(words.CHANGED if file_state is FileState.CHANGED else words.GONE)
    return DocumentLine(file.name, state_words.line(filter(None, parts)), file_state)


def summary_line(status: FolderDocumentsStatus, model_name: str) -> str:
    """Return the tokens of all documents, their state, and what they leave of the context."""
    parts = [words.num_tokens(status.num_tokens), _state(status, model_name)]
    left = status.num_left
    if left is not None and status.state is not DocumentState.TOO_LONG:
        parts.append(words.leaves(left))
    return state_words.line(filter(None, parts))


def short_state(status: FolderDocumentsStatus, model_name: str) -> str:
    """Return the tokens and the state, for the empty chat and the tip of the folder's row."""
    parts = [words.num_tokens(status.num_tokens), _state(status, model_name)]
    return ", ".join(filter(None, parts))


def _state(status: FolderDocumentsStatus, model_name: str) -> str:
    match status.state:
        case DocumentState.TOO_LONG:
            return words.too_long(model_name)
        case DocumentState.READING:
            return _progress(status)
        case DocumentState.WAITING:
            return _waiting(status)
        case state:
            return _ALL_STATES[state]


def _progress(status: FolderDocumentsStatus) -> str:
    seconds = status.seconds_left
    return words.share_read(_percent(status), "" if seconds is None else figures.seconds(seconds))


def _waiting(status: FolderDocumentsStatus) -> str:
    why = words.LATER
    if status.is_off:
        why = words.READING_OFF
    elif status.is_paused:
        why = words.PAUSED
    return f"{words.share_read(_percent(status), '')} · {why}" if status.num_read else why


def _percent(status: FolderDocumentsStatus) -> str:
    return figures.percent(min(1.0, status.num_read / (status.num_tokens or 1)))


def empty_chat_note(
    folder: Folder,
    status: FolderDocumentsStatus | None,
    model_name: str,
    files: Collection[FileState] = (),
    *,
    is_without: bool,
) -> str:
    """Return the note in an empty chat of a folder with documents. See folder_mark on `files`."""
    count = len(folder.documents)
    if is_without:
        return words.begins_without(count, folder.name)
    return words.begins_with(count, folder.name, _state_with_files(status, model_name, files))


def _state_with_files(
    status: FolderDocumentsStatus | None, model_name: str, files: Collection[FileState]
) -> str:
    counts = Counter(files)
    parts = [
        short_state(status, model_name) if status else "",
        words.num_changed(counts[FileState.CHANGED]),
        words.num_gone(counts[FileState.GONE]),
    ]
    return " · ".join(filter(None, parts))


@dataclass(frozen=True, slots=True)
class FolderMark:
    """The mark in the row of a folder that has documents."""

    state: ChatState
    text: str  # for its tooltip and for screen readers


def folder_mark(
    num_documents: int,
    status: FolderDocumentsStatus | None,
    model_name: str,
    files: Collection[FileState] = (),
) -> FolderMark:
    """Return the mark of a folder.

    Args:
        num_documents: number of its documents.
        status: None if it is not known yet.
        model_name: name of the loaded model.
        files: states of the files that are not as they were read.
    """
    state = _MARKS.get(status.state, ChatState.UNREAD) if status else ChatState.UNREAD
    text = _state_with_files(status, model_name, files)
    return FolderMark(state, words.row_tip(num_documents, text))


def can_pause(status: FolderDocumentsStatus | None) -> bool:
    """Return True if there is reading to pause or to resume."""
    if status is None or status.is_off:
        return False
    return status.state in (DocumentState.READING, DocumentState.WAITING)


def names_of(documents: Sequence[FolderDocument]) -> set[tuple[str, str]]:
    """Return names with digests, by which documents are compared."""
    return {(one.attachment.name, one.attachment.digest) for one in documents}


def key_of(document: FolderDocument) -> DocumentKey:
    return document.path, document.attachment.digest
