"""The state of a folder's documents, from what the engine reports."""

from __future__ import annotations

from app.viewmodels.folder_documents import (
    DocumentState,
    FolderDocumentsStatus,
    Held,
    documents_status,
)
from engine.questions import TokensCounted
from tests.app.viewmodels.test_document_lines import FOLDER
from tests.fakes.fake_engine import FACTS

COUNTED = TokensCounted(num_tokens=300, num_cached=0, part_ends=(20, 120, 300))


def status(counted: TokensCounted | None, held: Held) -> FolderDocumentsStatus:
    return documents_status(
        FOLDER,
        facts=FACTS,
        counted=counted,
        is_far_too_long=False,
        held=held,
        budget_bytes=1 << 40,
        num_reading=None,
        seconds_left=None,
        is_paused=False,
        is_off=False,
    )


def states(found: FolderDocumentsStatus) -> list[DocumentState]:
    return [one.state for one in found.documents]


def test_document_before_a_changed_one_is_still_ready() -> None:
    counted = TokensCounted(num_tokens=300, num_cached=130, part_ends=COUNTED.part_ends)
    found = status(counted, Held())

    assert states(found) == [DocumentState.IN_MEMORY, DocumentState.WAITING]
    assert (found.state, found.num_read) == (DocumentState.WAITING, 130)


def test_document_that_would_be_restored_from_disk_is_ready_on_disk() -> None:
    counted = TokensCounted(
        num_tokens=300, num_cached=130, num_on_disk=130, part_ends=COUNTED.part_ends
    )

    assert states(status(counted, Held())) == [DocumentState.ON_DISK, DocumentState.WAITING]


def test_report_on_the_documents_counts_more_than_an_earlier_count() -> None:
    found = status(COUNTED, Held(memory_tokens=300))

    assert states(found) == [DocumentState.IN_MEMORY, DocumentState.IN_MEMORY]
    assert found.state is DocumentState.IN_MEMORY
