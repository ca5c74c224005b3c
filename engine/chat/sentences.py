"""The number of complete sentences in a text that is being written. Pure Python."""

from __future__ import annotations

_ENDS = frozenset(".!?…؟।")  # end a sentence if white space follows
_WIDE_ENDS = frozenset("。！？")  # noqa: RUF001 — end a sentence in any case
# may stand between the end of a sentence and the white space after it
_CLOSING = frozenset("\"'”’»)]*_`")


def num_sentences(text: str) -> int:
    """Return the number of complete sentences and lines at the start of a text.

    A sentence has a letter, so the number of a list item is none. An abbreviation counts as an end.
    """
    count = 0
    has_letter = is_ended = False
    for char in text:
        if char in _WIDE_ENDS or (char.isspace() and (is_ended or char == "\n")):
            count += has_letter
            has_letter = is_ended = False
        elif char in _ENDS:
            is_ended = has_letter
        elif char not in _CLOSING:
            has_letter |= char.isalpha()
            is_ended = False
    return count
