"""Text in the form in which it is searched: without case and accents. Pure functions."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

# Chinese, Japanese and Korean characters. Their words have no spaces between them.
_CJK = re.compile(
    "([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff])"
)
_PIECE = 20_000  # characters that are normalised at once


def search_text(text: str) -> str:
    """Return a text for the tokenizer unicode61 of SQLite, which splits it into words.

    Put spaces around each Chinese, Japanese and Korean character, so that each is a word. SQLite's
    tokenizer folds case and accents. The result depends on the text only: to remove a text from the
    index, SQLite needs the text that was added.
    """
    if text.isascii():
        return text
    # Whole lines at a time: other threads wait while a piece is normalised. Nothing combines with a
    # line break, so the result is that of the whole text.
    return "".join(_spaced(piece) for piece in _pieces(text))


def _pieces(text: str) -> Iterator[str]:
    start = 0
    while len(text) - start > _PIECE:
        end = text.rfind("\n", start, start + _PIECE) + 1 or text.find("\n", start + _PIECE) + 1
        if not end:
            break
        yield text[start:end]
        start = end
    yield text[start:]


def _spaced(text: str) -> str:
    return _CJK.sub(r" \1 ", unicodedata.normalize("NFKC", text))


def fold(text: str) -> tuple[str, list[int] | range]:
    """Return a text without case and accents, and the offset in `text` of each folded character.

    The last offset is the length of the text.
    """
    if text.isascii():
        return text.lower(), range(len(text) + 1)
    folded: list[str] = []
    offsets: list[int] = []
    for offset, letter in enumerate(text):
        for part in unicodedata.normalize("NFKD", letter):
            if not unicodedata.combining(part):
                lower = part.lower()
                folded.append(lower)
                offsets += [offset] * len(lower)
    return "".join(folded), [*offsets, len(text)]
