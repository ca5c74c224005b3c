"""The text of a file as a text editor of Qt can show it, with the same places. No Qt, no I/O."""

from __future__ import annotations

from bisect import bisect_left

from app.viewmodels.long_lines import LONG_LINE, PIECE

# Line ends, and characters that Qt's documents use for themselves: each becomes one character.
_REPLACED = str.maketrans(
    {
        "\r": "\n",
        "\u2028": "\n",
        "\u2029": "\n",
        "\0": "\ufffd",
        "\ufdd0": "\ufffd",
        "\ufdd1": "\ufffd",
    }
)
_ASTRAL = "\U00010000"  # the first character of two UTF-16 units


class DocumentText:
    """A text in which very long lines are divided, and its places in UTF-16 units.

    Qt lays out a whole line before it paints a part of it, so a line is at most LONG_LINE long.
    """

    def __init__(self, text: str) -> None:
        text = text.replace("\r\n", " \n").translate(_REPLACED)
        self._breaks = _breaks(text)  # places before which a line break is added
        pieces = (
            text[start:end]
            for start, end in zip([0, *self._breaks], [*self._breaks, len(text)], strict=True)
        )
        self.text = "\n".join(pieces)
        self._wide = (
            [] if text.isascii() else [at for at, char in enumerate(text) if char >= _ASTRAL]
        )

    def position(self, place: int) -> int:
        """Return the place of a character in the editor, in UTF-16 units."""
        added = bisect_left(self._breaks, place + 1)
        return place + added + bisect_left(self._wide, place)


def _breaks(text: str) -> list[int]:
    breaks: list[int] = []
    start = 0
    for line in text.split("\n"):
        if len(line) > LONG_LINE:
            breaks += range(start + PIECE, start + len(line), PIECE)
        start += len(line) + 1
    return breaks
