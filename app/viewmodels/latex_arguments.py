"""Arguments of LaTeX commands: a group in braces, a command, or a character. Pure functions."""

from __future__ import annotations

import re

_TOKEN = re.compile(r"\\(?:[a-zA-Z]+|.)|.", re.DOTALL)


def argument(latex: str, at: int) -> tuple[str, int] | None:
    """Return the argument at or after a position, without braces, and the position of its end.

    Return None if there is no argument, or if its closing brace is missing.
    """
    start = at + len(latex[at:]) - len(latex[at:].lstrip())
    if not latex.startswith("{", start):
        token = _TOKEN.match(latex, start)
        return None if token is None or token.group() == "}" else (token.group(), token.end())
    depth = 0
    for token in _TOKEN.finditer(latex, start):
        depth += {"{": 1, "}": -1}.get(token.group(), 0)
        if depth == 0:
            return latex[start + 1 : token.start()], token.end()
    return None


def arguments(latex: str, at: int, count: int) -> tuple[list[str], int] | None:
    """Return several arguments, and the position of the last one's end. See `argument`."""
    found: list[str] = []
    for _ in range(count):
        result = argument(latex, at)
        if result is None:
            return None
        found.append(result[0])
        at = result[1]
    return found, at
