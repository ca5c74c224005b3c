"""Documents of folders and quotes of files, for pictures of the window."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from app.conversation.attachments import make_attachment
from app.conversation.folder import Folder, FolderDocument
from app.conversation.placement import FolderId
from app.viewmodels.folder_documents import DocumentState, DocumentStatus, FolderDocumentsStatus
from app.widgets.documents_sheet import DocumentsSheet
from app.widgets.transcript.rows.row import RowAction
from tests.fakes.stage import Stage
from tests.screenshots.organising import SHORT_MS

Fill = Callable[[Stage], None]
_FILTER = "Rinse the filter with lukewarm water once a month, and let it dry for a whole day."
_PUMP = "The pump must be switched off before the lid of the tank is opened."
_LINES = "The manual explains every part of the machine in the order of its use.\n"
_FILES = (
    ("Manual of the machine, second edition.pdf", 31_200),
    ("Safety rules.docx", 12_700),
    ("Prices 2026.csv", 8_400),
    ("Minutes of the meetings.md", 6_900),
    ("glossary.txt", 800),
)


def _make_folder(fill: Fill, stage: Stage, state: DocumentState) -> Folder:
    fill(stage)
    made = stage.core.folders.create(Folder(folder_id=FolderId(""), name="Work"))
    parts = (f"{_LINES * 12}{_FILTER}\n{_LINES * 12}{_PUMP}\n{_LINES * 8}", f"{_PUMP}\n")
    folder = replace(
        made,
        documents=tuple(
            FolderDocument(
                attachment=make_attachment(
                    name,
                    name.rpartition(".")[2],
                    f"{name}\n{parts[place] if place < len(parts) else _LINES}",
                    source="" if place else f"/no/{name}",
                )
            )
            for place, (name, _) in enumerate(_FILES)
        ),
    )
    stage.core.folders.change(folder)
    is_ready = state is DocumentState.IN_MEMORY
    states = [DocumentState.IN_MEMORY, state, *[DocumentState.WAITING] * 3]
    status = FolderDocumentsStatus(
        folder_id=folder.folder_id,
        name=folder.name,
        documents=tuple(
            DocumentStatus(
                name=one.attachment.name,
                num_tokens=_FILES[at][1],
                state=DocumentState.IN_MEMORY if is_ready else states[at],
            )
            for at, one in enumerate(folder.documents)
        ),
        state=state,
        num_tokens=60_000,
        context_len=131_072,
        num_read=60_000 if is_ready else 38_400,
        seconds_left=None if is_ready else 70.0,
    )

    def status_of(folder_id: FolderId) -> FolderDocumentsStatus | None:
        return status if folder_id == folder.folder_id else None

    stage.core.documents.status = status_of
    stage.core.documents.changed.emit(folder.folder_id)
    stage.settle()
    return folder


def sheet(fill: Fill, stage: Stage) -> None:
    """Show the sheet while the documents are being read; the file of the first is gone."""
    stage.window.documents.open(_make_folder(fill, stage, DocumentState.READING))
    stage.wait(SHORT_MS)
    stage.window.findChildren(DocumentsSheet)[-1].list.setCurrentRow(0)
    stage.wait(SHORT_MS)


def empty_chat(fill: Fill, stage: Stage) -> None:
    """Show a new chat that begins with documents."""
    folder = _make_folder(fill, stage, DocumentState.IN_MEMORY)
    stage.core.library.new_chat(folder.folder_id)
    stage.wait(SHORT_MS)


def quotes(fill: Fill, stage: Stage) -> None:
    """Show an answer that quotes two of the documents, whose rows are open."""
    empty_chat(fill, stage)
    question = "How is the filter cleaned?"
    answer = f"The manual says:\n\n> {_FILTER}\n\nBefore that: **{_PUMP}**"
    stage.chat(question, answer)
    stage.wait_until(lambda: stage.pane.transcript.items[-1].quotes != ())
    stage.wait(SHORT_MS)


def open_list(fill: Fill, stage: Stage) -> None:
    quotes(fill, stage)
    stage.click(RowAction.TOGGLE_DOCUMENTS)


def text(fill: Fill, stage: Stage) -> None:
    """Show the text of a document at the words of an answer."""
    quotes(fill, stage)
    bar = stage.pane.view.verticalScrollBar()
    bar.setValue(bar.maximum())
    stage.click(RowAction.OPEN_QUOTE)
    stage.wait(SHORT_MS)
