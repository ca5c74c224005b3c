"""The texts of file chips: what fits is shown, and the tooltip has all."""

from __future__ import annotations

import pytest

from app.conversation.attachments import make_attachment
from app.viewmodels.attachments import FileSize, chip_of, short_name


@pytest.mark.parametrize(
    ("num_read", "details"),
    [
        (0, "212 pages · 25,014 tokens"),
        (10_506, "25,014 tokens · 42% read"),
        (25_014, "25,014 tokens · read"),
    ],
)
def test_chip_of_a_file_that_is_read_leaves_out_the_pages(num_read: int, details: str) -> None:
    file = make_attachment("Manual.pdf", "pdf", "Rinse it.", num_pages=212)
    chip = chip_of(file, FileSize(25_014, num_read), counts=False)
    assert chip.details == details
    assert chip.tip.startswith("Manual.pdf\n212 pages · 25,014 tokens")


def test_chip_without_a_count_has_pages_and_waits_for_tokens() -> None:
    file = make_attachment("Manual.pdf", "pdf", "Rinse it.", num_pages=212)
    assert chip_of(file, None, counts=True).details == "212 pages · Counting…"
    assert chip_of(file, None, counts=False).details == "212 pages"


def test_short_name_keeps_short_names_and_the_ends_of_long_ones() -> None:
    assert short_name("notes.md") == "notes.md"
    name = short_name("Manual of the machine, second edition.pdf")
    assert name == "Manual of the…d edition.pdf"
