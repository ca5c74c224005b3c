"""Places at which a printed page may end in a message, and headers to repeat on the next page."""

from __future__ import annotations

from collections.abc import Sequence

from app.widgets.transcript.messages.pile import RowPile
from app.widgets.transcript.messages.places import PageBreak
from app.widgets.transcript.rows.row import TranscriptRow
from app.widgets.transcript.rows.table import TableRow


def find_page_break(
    rows: Sequence[TranscriptRow], pile: RowPile, top: int, bottom: int
) -> PageBreak | None:
    """Return the last place between two y coordinates at which a page may end, or None."""
    last, first = pile.at(bottom), pile.at(top)
    if last is None or first is None:
        return None
    for number in range(last, first - 1, -1):
        row, row_top = rows[number], pile.top(number)
        inside = [row_top + y for y in row.page_breaks() if top < row_top + y <= bottom]
        if inside:
            return PageBreak(inside[-1], inside[-1], _header(rows, pile, number, inside[-1]))
        above = pile.gap_top(number)
        if top < above <= bottom and not rows[number - 1].keeps_next:
            return PageBreak(above, row_top, _header(rows, pile, number, row_top))
    return None


def _header(
    rows: Sequence[TranscriptRow], pile: RowPile, number: int, y: int
) -> tuple[int, int] | None:
    """Return the top and the bottom of the header of a table that continues at y."""
    for before in range(number, -1, -1):
        row, top = rows[before], pile.top(before)
        if not isinstance(row, TableRow):
            return None
        if row.header_height:
            return (top, top + row.header_height) if top < y else None
    return None
