"""Places of the rows of a long table in the Markdown source."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from app.viewmodels.blocks import SourceRange
from app.widgets.transcript.rows.row import TranscriptRow
from app.widgets.transcript.rows.table import TableRow


def set_table_sources(rows: Sequence[TranscriptRow], table: SourceRange, text: str) -> None:
    """Give each row of a table its lines of the source. The header has the delimiter line too."""
    lines = iter(text[table.start : table.end].split("\n"))
    start = table.start
    for row in rows:
        assert isinstance(row, TableRow)
        part = "\n".join(islice(lines, len(row.rows) + (not row.continues)))
        row.source = SourceRange(start, start + len(part))
        start += len(part) + 1
