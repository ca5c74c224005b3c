"""Conversion between points and text positions in one message. Main thread only."""

from __future__ import annotations

from collections.abc import Iterator

from app.widgets.transcript.messages.pile import RowPile
from app.widgets.transcript.messages.places import BODY, LineStart, Place
from app.widgets.transcript.rows.row import TranscriptRow


class TextPlaces:
    """Finds text positions and lines in the rows of one message, in message coordinates."""

    def __init__(self, pile: RowPile) -> None:
        self._pile = pile

    def has_text_at(self, y: float) -> bool:
        number = self._pile.at(y)
        return number is not None and self._pile.shape.text.has_text(number)

    def place_at(self, x: float, y: float) -> Place:
        """Return the text position nearest to a point."""
        number, text = self._pile.at(y) or 0, self._pile.shape.text
        for candidate in (*range(number, len(self._pile.rows)), *range(number - 1, -1, -1)):
            row = self._pile.rows[candidate]
            if not text.has_text(candidate):
                continue
            if candidate > number:
                return Place(text.ordinal(candidate), 0)
            if candidate < number:
                return Place(text.ordinal(candidate), len(row.text))
            corner = self._pile.corner(candidate)
            offset = row.position_at(x - corner.x(), max(0.0, y - corner.y()))
            return Place(text.ordinal(candidate), offset)
        return Place(BODY, 0)

    def line_at(self, y: float) -> LineStart | None:
        """Return the line of text at `y`, or None if `y` is not inside a measured text row."""
        number, text = self._pile.at(y), self._pile.shape.text
        if number is None or not text.has_text(number) or self._pile.rows[number].width < 0:
            return None
        row, top = self._pile.rows[number], self._pile.top(number)
        if not top <= y < top + row.height:
            return None
        offset = row.position_at(0, y - top)
        return LineStart(Place(text.ordinal(number), offset), top + row.line_top(offset))

    def line_top(self, place: Place) -> int | None:
        """Return the y of the line at a text position, or None if its row no longer exists."""
        row, number = self.text_row(place.row), self._pile.shape.text.index(place.row)
        if row is None:
            return None
        self._pile.measure(number)
        return self._pile.top(number) + row.line_top(place.offset)

    def text_row(self, ordinal: int) -> TranscriptRow | None:
        """Return the text row with the given ordinal (see TextSections), or None."""
        number, text = self._pile.shape.text.index(ordinal), self._pile.shape.text
        return (
            self._pile.rows[number]
            if number < len(self._pile.rows) and text.has_text(number)
            else None
        )

    def rows_between(self, first: Place, last: Place) -> Iterator[tuple[int, TranscriptRow]]:
        """Yield the ordinal and the row for all text rows from place `first` to place `last`."""
        text = self._pile.shape.text
        for number in range(text.index(first.row), len(self._pile.rows)):
            if text.has_text(number):
                ordinal = text.ordinal(number)
                if ordinal > last.row:
                    return
                yield ordinal, self._pile.rows[number]

    def text_rows(self) -> Iterator[tuple[int, TranscriptRow]]:
        """Yield the y coordinate and the row for each text row."""
        for number, row in enumerate(self._pile.rows):
            if self._pile.shape.text.has_text(number):
                yield self._pile.top(number), row
