"""The notes about attached files."""

from __future__ import annotations

import pytest

from app.conversation.attachments import make_attachment
from app.viewmodels.attachments import FileSize, reading_note

BOOK, NOTES = (make_attachment(f"{name}.txt", "text", "A line.") for name in ("book", "notes"))


@pytest.mark.parametrize(
    ("read", "seconds", "note"),
    [
        ((400,), None, "Reading book.txt · 80%"),
        ((400,), 7, "Reading book.txt · 80% · about 7 s left"),
        ((400, 0), 205, "Reading 2 files · 8% · about 3 min left"),
        ((500, 2000), 40, "Reading 2 files · 50% · about 40 s left"),
        ((500, 4500), None, ""),
    ],
)
def test_note_has_the_share_and_the_time_of_all_files(
    read: tuple[int, ...], seconds: int | None, note: str
) -> None:
    sizes = [FileSize(*size) for size in zip((500, 4500), read, strict=False)]
    assert reading_note((BOOK, NOTES)[: len(read)], sizes, seconds) == note
