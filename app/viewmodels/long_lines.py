"""Splitting of very long lines for the composer. No Qt, no I/O.

The composer's editor lays out a whole line again at every key. So a very long line is cut into
pieces, each with an invisible joint at its end. When the text is taken out, each joint is removed
with the line break after it: the text that is sent equals the text that was pasted.
"""

from __future__ import annotations

LONG_LINE = 10_000  # characters; the layout of a shorter line takes no noticeable time
PIECE = 2_000  # characters in one piece of a long line
JOINT = "\u2060\u2060"  # two word joiners: invisible, and not found together in text


def break_long_lines(text: str) -> str:
    lines = text.split("\n")
    if max(map(len, lines)) <= LONG_LINE:
        return text
    return "\n".join(_pieces(line) if len(line) > LONG_LINE else line for line in lines)


def rejoin_lines(text: str) -> str:
    """Undo break_long_lines, also after the user has edited the text."""
    return text.replace(f"{JOINT}\n", "").replace(JOINT, "")


def _pieces(line: str) -> str:
    pieces = (line[at : at + PIECE] for at in range(0, len(line), PIECE))
    return f"{JOINT}\n".join(pieces)
