"""A code fence at the end of a growing text, whose closing line has not arrived. No Qt, no I/O.

MarkdownStream does not parse such a fence again: it adds new text to its block.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from markdown_it.token import Token

from app.viewmodels.blocks import CodeBlock, SourceRange
from app.viewmodels.markdown import read_code

# An indented fence does not match. A tail with such a fence is parsed again at each update.
_FENCE = re.compile(r"(`{3,}+|~{3,}+)[^\n]*+\n")


@dataclass(frozen=True, slots=True)
class OpenFence:
    """A top-level code fence without its closing line yet. Offsets refer to the whole text."""

    parsed: CodeBlock  # block as parsed when the fence was found; its text is outdated
    start: int  # offset of the opening line
    content: int  # offset of the first character of code
    marker: str  # character of the fence: "`" or "~"
    closing: re.Pattern[str]  # pattern for the closing line

    def block(self, text: str, *, is_finished: bool) -> CodeBlock:
        """Return the fence as a block. It ends at the end of `text`.

        If the last line may become the closing line, the block does not include it.
        """
        end = len(text)
        last = text.rfind("\n") + 1
        line = text[last:]
        if is_finished and line and self.closing.fullmatch(line):
            return self._code(text, last, end, closed=True)
        if is_finished and not line.strip(" \t"):
            return self._code(text, last, max(last - 1, self.start), closed=False)
        is_undecided = not is_finished and not line.strip(self.marker + " ")
        return self._code(text, last if is_undecided else end, end, closed=False)

    def close(self, text: str, start: int) -> CodeBlock | None:
        """Return the closed block if a complete line of `text` after `start` closes the fence."""
        while (line_end := text.find("\n", start)) >= 0:
            if self.closing.fullmatch(text, start, line_end):
                return self._code(text, start, line_end, closed=True)
            start = line_end + 1
        return None

    def _code(self, text: str, content_end: int, end: int, *, closed: bool) -> CodeBlock:
        return replace(
            self.parsed,
            text=text[self.content : content_end].removesuffix("\n"),
            source=SourceRange(self.start, end),
            closed=closed,
        )


def open_fence(tokens: Sequence[Token], line: int, text: str, start: int) -> OpenFence | None:
    """Return the open fence if the tail is an open top-level fence, otherwise None.

    Args:
        tokens: the tokens of the text from which the tail was cut.
        line: index of the line of that text at which the tail begins.
        text: the whole text.
        start: offset of the tail in the whole text.
    """
    opening = _FENCE.match(text, start)
    token = tokens[-1] if tokens else None
    if opening is None or token is None or token.type != "fence" or token.level != 0:
        return None
    if token.map is None or token.map[0] != line:
        return None
    parsed = read_code(token, SourceRange(start, len(text)))
    marker = opening[1]
    closing = re.compile(rf" {{0,3}}{re.escape(marker)}{re.escape(marker[0])}*[ \t]*")
    return OpenFence(parsed, start, opening.end(), marker[0], closing)
