"""The texts of file chips, and the note about reading. A chip shows what fits, its tooltip all."""

from __future__ import annotations

import pytest

from app.conversation.attachments import make_attachment
from app.viewmodels.attachments import FileSize, chip_of, estimate, reading_note, short_name


@pytest.mark.parametrize(
    ("num_read", "details"),
    [
        (0, "212 pages · 25,014 tokens"),
        (10_506, "25,014 tokens · 42% read"),
        (24_980, "25,014 tokens · 99% read"),
        (25_003, "25,014 tokens · read"),  # the end is read with the question
    ],
)
def test_chip_of_a_file_that_is_read_leaves_out_the_pages(num_read: int, details: str) -> None:
    file = make_attachment("Manual.pdf", "pdf", "Rinse it.", num_pages=212)
    chip = chip_of(file, FileSize(25_014, num_read), counts=False)
    assert chip.details == details
    assert chip.tip.startswith("Manual.pdf\n212 pages · 25,014 tokens")


def test_chip_of_a_part_that_is_read_names_the_part() -> None:
    file = make_attachment("log.txt", "text", "Sail on.").with_text("Sail", "First 48%")
    chip = chip_of(file, FileSize(4_926, 738), counts=False)
    assert chip.details == "First 48% · 14% read"


def test_chip_without_a_count_has_pages_and_waits_for_tokens() -> None:
    file = make_attachment("Manual.pdf", "pdf", "Rinse it.", num_pages=212)
    assert chip_of(file, None, counts=True).details == "212 pages · Counting…"
    assert chip_of(file, None, counts=False).details == "212 pages"


def test_chip_of_a_file_too_long_to_be_counted_has_an_estimate() -> None:
    file = make_attachment("log.md", "md", "Sail on. " * 14_600)
    chip = chip_of(file, None, counts=False, estimated=estimate(file, 4.0))
    assert chip.details == "about 33,000 tokens"


def test_short_name_keeps_short_names_and_the_ends_of_long_ones() -> None:
    assert short_name("notes.md") == "notes.md"
    name = short_name("Manual of the machine, second edition.pdf")
    assert name == "Manual of the…d edition.pdf"


BOOK, NOTES = (make_attachment(f"{name}.txt", "text", "A line.") for name in ("book", "notes"))


@pytest.mark.parametrize(
    ("read", "seconds", "note"),
    [
        ((400,), None, "Reading book.txt · 42%"),
        ((400,), 7, "Reading book.txt · 42% · about 7 s left"),
        ((400, 0), 205, "Reading 2 files · 42% · about 3 min left"),
        ((500, 2000), 40, "Reading 2 files · 42% · about 40 s left"),
        ((500, 4500), None, ""),
    ],
)
def test_note_has_the_share_of_the_prompt_and_the_time_of_all_files(
    read: tuple[int, ...], seconds: int | None, note: str
) -> None:
    sizes = [FileSize(*size) for size in zip((500, 4500), read, strict=False)]
    assert reading_note((BOOK, NOTES)[: len(read)], sizes, "42%", seconds) == note
