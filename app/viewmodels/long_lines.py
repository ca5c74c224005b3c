"""Splitting of very long lines for the composer. No Qt, no I/O.

At every key press, the composer's text editor lays out the whole current line again. So a very long
line is cut into pieces. An invisible joint and a line break follow each piece except the last one.
Before the text is sent, each joint is removed together with its line break, so that the sent text
equals the pasted text.
"""

from __future__ import annotations

LONG_LINE = 10_000  # in characters; up to this length, users do not notice the layout time
PIECE = 2_000  # number of characters in one piece of a long line
JOINT = "\u2060\u2060"  # two word joiners, which are invisible; ordinary text has no such pair


def break_long_lines(text: str) -> str:
    lines = text.split("\n")
    if max(map(len, lines)) <= LONG_LINE:
        return text
    return "\n".join(_pieces(line) if len(line) > LONG_LINE else line for line in lines)


def rejoin_lines(text: str) -> str:
    """Undo break_long_lines(). This works even if the user has edited the text."""
    return text.replace(f"{JOINT}\n", "").replace(JOINT, "")


def _pieces(line: str) -> str:
    pieces = (line[at : at + PIECE] for at in range(0, len(line), PIECE))
    return f"{JOINT}\n".join(pieces)
