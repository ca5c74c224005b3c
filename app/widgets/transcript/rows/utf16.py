"""Convert between positions in a Python string and positions in Qt's UTF-16 text. No Qt."""

from __future__ import annotations

from bisect import bisect_left

_LAST_OF_PLANE = "\uffff"


class Utf16Units:
    """A converter between Python positions and UTF-16 positions in one text.

    A character outside the Basic Multilingual Plane, such as an emoji, is one Python character and
    two UTF-16 units.
    """

    def __init__(self, text: str) -> None:
        self._wide = (
            []
            if text.isascii()
            else [at for at, character in enumerate(text) if character > _LAST_OF_PLANE]
        )
        self._wide_units = [at + number for number, at in enumerate(self._wide)]

    def to_qt(self, position: int) -> int:
        return position + bisect_left(self._wide, position)

    def to_python(self, unit: int) -> int:
        return unit - bisect_left(self._wide_units, unit)
