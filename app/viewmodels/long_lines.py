"""Text with very long lines, made fit for an editor that lays out a whole line at every key. Pure.

A line is cut into pieces with an invisible joint at the end of each; taking the text out again
removes joints and the breaks after them, so that what was pasted is what is sent.
"""

from __future__ import annotations

LONG_LINE = 10_000  # characters; below, nobody notices the layout
PIECE = 2_000
JOINT = "\u2060\u2060"  # two word joiners: invisible, and never met in text


def break_long_lines(text: str) -> str:
    lines = text.split("\n")
    if max(map(len, lines)) <= LONG_LINE:
        return text
    return "\n".join(_pieces(line) if len(line) > LONG_LINE else line for line in lines)


def rejoin_lines(text: str) -> str:
    """Undo break_long_lines, also after the text was edited."""
    return text.replace(f"{JOINT}\n", "").replace(JOINT, "")


def _pieces(line: str) -> str:
    pieces = (line[at : at + PIECE] for at in range(0, len(line), PIECE))
    return f"{JOINT}\n".join(pieces)
