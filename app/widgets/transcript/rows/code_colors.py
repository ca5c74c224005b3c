"""The colours of a code block, from the helper process. Used on the main thread only.

While the block grows, each new line is lexed once, and the colours are provisional. When the block
is complete, the whole block is lexed again, and the colours are exact. Code that is not lexed yet
is painted in one colour.
"""

from __future__ import annotations

from concurrent.futures import Future

from app.viewmodels.blocks import CodeBlock
from app.viewmodels.highlight import LinePieces
from app.viewmodels.lexer_shelf import Absent, GrowingLexer, LexerShelf
from app.widgets.transcript.rows.row import IdleResult


class CodeColors:
    """The coloured pieces of each line of a code block."""

    def __init__(self, shelf: LexerShelf, block: CodeBlock) -> None:
        self._shelf = shelf
        self._name = block.language
        # Lexer of the provisional colours. None if there are no provisional colours.
        self._growing: GrowingLexer | None = None
        self._lexing: Future[list[LinePieces] | None] | None = None  # lexes the complete block
        self._exact: list[LinePieces] = []
        self.done = not block.language  # True if the colours will not change any more

    def grow(self, block: CodeBlock) -> None:
        """Colour the text that was added to a growing block since the last call."""
        if isinstance(self._shelf.language(self._name), Absent):
            return
        if self._growing is None:
            self._growing = self._shelf.growing(self._name)
        self._growing.update(block.text)

    def advance(self, block: CodeBlock) -> IdleResult:
        """Use the colours that the helper process has returned, and request missing ones.

        Return CHANGED if the row must be painted again. Return WAITING if the lexer has not
        finished. Return DONE if nothing is left to do.
        """
        if self.done:
            return IdleResult.DONE
        language = self._shelf.language(self._name)
        if isinstance(language, Absent):
            self.done = language is Absent.UNKNOWN
            return IdleResult.DONE if self.done else IdleResult.WAITING
        return self._finish(block.text) if block.closed else self._advance_growing(block)

    def _advance_growing(self, block: CodeBlock) -> IdleResult:
        if self._growing is None:
            self.grow(block)
            return IdleResult.CHANGED
        if self._growing.poll():
            return IdleResult.CHANGED
        return IdleResult.WAITING if self._growing.is_waiting else IdleResult.DONE

    def _finish(self, code: str) -> IdleResult:
        if self._lexing is None:
            self._lexing = self._shelf.exact(self._name, code)
        if not self._lexing.done():
            return IdleResult.WAITING
        self._exact = self._lexing.result() or []
        self.done, self._growing, self._lexing = True, None, None
        return IdleResult.CHANGED

    def pieces(self, line: int, text: str) -> LinePieces:
        if self._growing is not None:
            return self._growing.colors.pieces(line, text)
        return self._exact[line] if line < len(self._exact) else ()
