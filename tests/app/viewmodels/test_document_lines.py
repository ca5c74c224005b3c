"""The lines about the documents of a folder, for each state."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.conversation.attachments import make_attachment
from app.conversation.folder import Folder, FolderDocument
from app.conversation.placement import FolderId
from app.viewmodels.chat_state import ChatState
from app.viewmodels.document_lines import (
    FileState,
    can_pause,
    document_rows,
    empty_chat_note,
    folder_mark,
    key_of,
    summary_line,
)
from app.viewmodels.folder_documents import DocumentState, DocumentStatus, FolderDocumentsStatus
from app.words import folder_documents as words

ONE, TWO = (
    FolderDocument(attachment=make_attachment(f"{name}.txt", "text", name, source=f"/{name}.txt"))
    for name in ("one", "two")
)
FOLDER = Folder(folder_id=FolderId("1"), name="Work", documents=(ONE, TWO))
STATUS = FolderDocumentsStatus(
    folder_id=FOLDER.folder_id,
    name="Work",
    documents=tuple(
        DocumentStatus(
            name=one.attachment.name,
            num_tokens=30_000,
            state=DocumentState.IN_MEMORY,
        )
        for one in FOLDER.documents
    ),
    state=DocumentState.IN_MEMORY,
    num_tokens=60_000,
    context_len=132_000,
)
WAITING = replace(STATUS, state=DocumentState.WAITING)
READING = replace(STATUS, state=DocumentState.READING, num_read=24_000, seconds_left=130.0)
TOO_LONG = replace(STATUS, state=DocumentState.TOO_LONG, num_tokens=140_000)
NO_MODEL = replace(STATUS, state=DocumentState.NO_MODEL, num_tokens=None, context_len=None)
LEFT = "leaves 72,000 of the context"


@pytest.mark.parametrize(
    ("status", "line"),
    [
        (STATUS, f"60,000 tokens · ready · {LEFT}"),
        (replace(STATUS, state=DocumentState.ON_DISK), f"60,000 tokens · ready on disk · {LEFT}"),
        (READING, f"60,000 tokens · 40% read · about 2 min left · {LEFT}"),
        (replace(READING, seconds_left=None), f"60,000 tokens · 40% read · {LEFT}"),
        (WAITING, f"60,000 tokens · waiting to be read · {LEFT}"),
        (replace(WAITING, is_paused=True), f"60,000 tokens · paused · {LEFT}"),
        (
            replace(WAITING, num_read=24_000, is_paused=True),
            f"60,000 tokens · 40% read · paused · {LEFT}",
        ),
        (replace(WAITING, is_off=True), f"60,000 tokens · {words.READING_OFF} · {LEFT}"),
        (TOO_LONG, f"140,000 tokens · {words.too_long('Tiny')}"),
        (
            replace(STATUS, state=DocumentState.NO_MEMORY),
            f"60,000 tokens · {words.NO_MEMORY} · {LEFT}",
        ),
        (NO_MODEL, "No model is loaded"),
    ],
)
def test_summary_is_true_for_each_state(status: FolderDocumentsStatus, line: str) -> None:
    assert summary_line(status, "Tiny") == line


def test_every_state_has_a_line_a_mark_and_a_note() -> None:
    for state in DocumentState:
        status = replace(STATUS, state=state)
        assert summary_line(status, "Tiny")
        mark = folder_mark(2, status, "Tiny")
        assert (mark.state is ChatState.MEMORY) is (state is DocumentState.IN_MEMORY)
        assert (mark.state is ChatState.DISK) is (state is DocumentState.ON_DISK)
        assert mark.text.startswith("2 documents · 60,000 tokens, ")
        note = empty_chat_note(FOLDER, status, "Tiny", is_without=False)
        assert note.startswith("Begins with 2 documents of Work: 60,000 tokens, ")


def test_mark_counts_files_that_are_not_as_they_were_read() -> None:
    files = [FileState.CHANGED, FileState.GONE, FileState.CHANGED, FileState.GONE]
    ready = replace(STATUS, state=DocumentState.ON_DISK)

    assert folder_mark(2, ready, "Tiny", files[:1]).text.endswith(
        "ready on disk · 1 changed on disk"
    )
    assert folder_mark(4, None, "", files).text == (
        "4 documents · 2 changed on disk · 2 files are gone"
    )


def test_state_without_a_number_of_tokens_does_not_begin_with_a_capital_letter() -> None:
    unknown = replace(STATUS, state=DocumentState.NO_MODEL, num_tokens=None)

    assert folder_mark(2, unknown, "").text == "2 documents · no model is loaded"
    note = empty_chat_note(FOLDER, unknown, "", is_without=False)
    assert note == "Begins with 2 documents of Work: no model is loaded"


def test_note_in_an_empty_chat_counts_files_that_are_not_as_they_were_read() -> None:
    note = empty_chat_note(FOLDER, None, "", [FileState.CHANGED], is_without=False)

    assert note == "Begins with 2 documents of Work: 1 changed on disk"


def test_unknown_status_claims_no_state() -> None:
    assert folder_mark(1, None, "").text == "1 document"
    note = empty_chat_note(FOLDER, None, "", is_without=False)
    assert note == "Begins with 2 documents of Work"
    assert [row.details for row in document_rows(FOLDER, None, {})] == ["", ""]


def test_rows_have_tokens_state_and_file() -> None:
    files = {key_of(ONE): FileState.CHANGED, key_of(TWO): FileState.GONE}
    assert [row.spoken for row in document_rows(FOLDER, STATUS, files)] == [
        "one.txt, 30,000 tokens · ready · changed on disk",
        "two.txt, 30,000 tokens · ready · file is gone",
    ]


def test_two_documents_with_the_same_text_have_their_own_states() -> None:
    copy = FolderDocument(attachment=replace(ONE.attachment, name="copy.txt"))
    first, last = STATUS.documents
    status = replace(STATUS, documents=(first, replace(last, state=DocumentState.WAITING)))
    rows = document_rows(replace(FOLDER, documents=(ONE, copy)), status, {})
    assert [row.details for row in rows] == [
        "30,000 tokens · ready",
        "30,000 tokens · not read yet",
    ]


def test_only_reading_can_be_paused() -> None:
    assert can_pause(READING)
    assert can_pause(replace(WAITING, is_paused=True))
    assert not can_pause(replace(WAITING, is_off=True))
    assert not any(map(can_pause, (STATUS, TOO_LONG, NO_MODEL, None)))


def test_note_on_a_changed_document_counts_those_behind_it() -> None:
    assert "behind" not in words.changed_note(0)
    assert "The document behind it is then read again too." in words.changed_note(1)
    assert "The 3 behind it are then read again too." in words.changed_note(3)
