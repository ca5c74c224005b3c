"""JSON values from an untrusted stream, one after the other, with bounded memory.

A file of conversations is either one JSON array or values in sequence (JSON lines). Only one
element is in memory at a time, so the size of a file is not limited by memory.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import TextIO

from app.exchange.data_urls import DATA_URL_START
from app.words import exchange as words

MAX_VALUE_CHARS = 32 * 1024 * 1024
# With data URLs of pictures. Each is one string, which is parsed at once and takes little memory.
MAX_CHARS_WITH_PICTURES = 96 * 1024 * 1024
_PICTURE_START = f'"{DATA_URL_START}'
_MIN_PICTURE = 1000  # characters of a data URL that is not counted
_CHUNK = 64 * 1024
_SPACE = " \t\r\n\ufeff"
_MAX_INTEGER = 2**63
_MAX_DIGITS = 19
_BAD_NUMBER = "out-of-range"  # fails the type check of the field that holds it


class UnreadableError(Exception):
    """A file or a conversation is not imported. The message is one sentence for the user."""


def json_values(stream: TextIO) -> Iterator[object]:
    """Yield the elements of the JSON array in a stream, or the JSON values in it.

    Raises:
        UnreadableError: the text is no JSON, breaks off, is nested too deeply, or one element has
            more than MAX_VALUE_CHARS characters without data URLs of pictures, or more than
            MAX_CHARS_WITH_PICTURES. The elements before it have been yielded.
    """
    text = _Buffer(stream)
    in_array = text.next_char() == "["
    if in_array:
        text.skip()
    while char := text.next_char():
        if in_array and char == "]":
            return
        if in_array and char == ",":
            text.skip()
            continue
        yield text.value()
    if in_array:
        raise UnreadableError(words.DAMAGED)


class _Buffer:
    """The text of a stream from the current position on, as far as it was read."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._text = ""
        self._at = 0

    def next_char(self) -> str:
        """Skip white space. Return the next character, or an empty string at the end."""
        while True:
            while self._at < len(self._text) and self._text[self._at] in _SPACE:
                self._at += 1
            if self._at < len(self._text) or not self._read_more():
                return self._text[self._at : self._at + 1]

    def skip(self) -> None:
        self._at += 1

    def value(self) -> object:
        while True:
            try:
                value, self._at = _DECODER.raw_decode(self._text, self._at)
            except RecursionError:
                raise UnreadableError(words.TOO_DEEP) from None
            except ValueError:
                # The text is damaged, or its rest was not read yet.
                if not self._read_more():
                    raise UnreadableError(words.DAMAGED) from None
            else:
                return value

    def _read_more(self) -> bool:
        self._text = self._text[self._at :]
        self._at = 0
        if _is_too_large(self._text):
            raise UnreadableError(words.TOO_LARGE)
        # Doubling the text bounds the work of parsing an element again and again.
        room = MAX_CHARS_WITH_PICTURES + 1 - len(self._text)
        piece = self._stream.read(min(room, max(_CHUNK, len(self._text))))
        self._text += piece
        return bool(piece)


def _is_too_large(text: str) -> bool:
    if len(text) <= MAX_VALUE_CHARS:
        return False
    return len(text) > MAX_CHARS_WITH_PICTURES or len(text) - _picture_chars(text) > MAX_VALUE_CHARS


def _picture_chars(text: str) -> int:
    """Return the number of characters in data URLs of pictures. The last one may be incomplete."""
    number = 0
    start = text.find(_PICTURE_START)
    while start >= 0:
        end = text.find('"', start + 1)
        length = (end if end >= 0 else len(text)) - start
        number += length if length >= _MIN_PICTURE else 0
        start = text.find(_PICTURE_START, start + length)
    return number


def _integer(digits: str) -> int | str:
    if len(digits) <= _MAX_DIGITS and abs(number := int(digits)) < _MAX_INTEGER:
        return number
    return _BAD_NUMBER


def _float(digits: str) -> float | str:
    number = float(digits)
    return number if math.isfinite(number) else _BAD_NUMBER


_DECODER = json.JSONDecoder(
    parse_int=_integer, parse_float=_float, parse_constant=lambda _: _BAD_NUMBER
)
