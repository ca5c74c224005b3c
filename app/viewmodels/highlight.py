"""Syntax colours for complete code blocks and for those still being written. No Qt, no I/O.

The result for a line is a tuple of pieces. A piece is a range of characters with one ink (colour).
exact_pieces() lexes a complete block. GrowingHighlighter colours a block that is still being
written. It stores the lexer's state at the end of the last complete line, so that it lexes each
line only once. Its colours are provisional, because later lines can change the meaning of earlier
lines, as in a here-document. When the block is complete, the code row replaces the provisional
colours with the exact ones.

A lexer may never end, so both run in the helper process only (helper_program.py), which
lexer_shelf.py calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from re import Match

from pygments.token import Comment, Error, Generic, Keyword, Name, Number, Operator, String

from app.viewmodels.lexers import Action, Language, LexedPiece, NewState, TokenType

MAX_LINES = 2_000  # number of lines that are coloured in a block; later lines stay plain
MAX_LINE_LEN = 2_000  # in characters; if a line is longer, the whole block stays plain
MAX_CODE = 100_000  # in characters; later lines of a longer block stay plain
MAX_PIECES = 150  # number of coloured pieces of a line; the rest of the line stays plain
# Largest length of an incomplete line that is coloured while it grows, in characters. Each update
# lexes the whole incomplete line again. The rest of a longer line is coloured when it is complete.
MAX_PARTIAL = 300
MAX_OPEN_COMMENT = 200  # maximum number of lines after an unclosed /* that are coloured as comment


class Ink(Enum):
    """The text colours of code. Each one names a field of app.theme.tokens.SyntaxColors."""

    KEYWORD = auto()
    STRING = auto()
    NUMBER = auto()
    FUNCTION = auto()
    TYPE = auto()
    COMMENT = auto()


@dataclass(frozen=True, slots=True)
class Piece:
    """A coloured range of a line: characters [start, start + length)."""

    start: int
    length: int
    ink: Ink


# The pieces of one line, from left to right. Text between pieces has the default colour.
LinePieces = tuple[Piece, ...]

_INKS: tuple[tuple[TokenType, Ink], ...] = (
    (Comment.Preproc, Ink.KEYWORD),
    (Comment, Ink.COMMENT),
    (Keyword.Type, Ink.TYPE),
    (Keyword, Ink.KEYWORD),
    (Operator.Word, Ink.KEYWORD),
    (Name.Function, Ink.FUNCTION),
    (Name.Decorator, Ink.FUNCTION),
    (Name.Class, Ink.TYPE),
    (Name.Builtin, Ink.TYPE),
    (Name.Exception, Ink.TYPE),
    (Name.Tag, Ink.KEYWORD),
    (Name.Attribute, Ink.TYPE),
    (String, Ink.STRING),
    (Number, Ink.NUMBER),
    (Generic.Inserted, Ink.STRING),
    (Generic.Deleted, Ink.TYPE),
    (Generic.Heading, Ink.COMMENT),
    (Generic.Subheading, Ink.COMMENT),
)


def ink_of(kind: TokenType) -> Ink | None:
    """Return the ink of a Pygments token type, or None for the default colour."""
    return next((ink for family, ink in _INKS if kind in family), None)


def exact_pieces(language: Language, code: str) -> Iterator[LinePieces]:
    """Yield the pieces of each line of a complete block. Lex lazily, as the caller iterates."""
    lines = code[:MAX_CODE].split("\n", MAX_LINES)[:MAX_LINES]
    head = "".join(f"{line}\n" for line in lines)
    if not _has_long_line(head):
        splitter = _LineSplitter()
        for _, kind, text in language.lexer.get_tokens_unprocessed(head):
            yield from splitter.add(kind, text)


@dataclass(slots=True, eq=False)
class GrowingColors:
    """The colours of a code block that is still being written."""

    lines: list[LinePieces]  # pieces of the lexed lines
    partial: LinePieces = ()  # pieces of the incomplete line after `lines`
    # Column of an unclosed comment in the line after `lines`, or None if there is no such comment.
    # The comment is lexed when its end has arrived.
    comment: int | None = None

    def pieces(self, line: int, text: str) -> LinePieces:
        """Return the pieces of the line with index `line`, whose text is `text`."""
        if line < len(self.lines):
            return self.lines[line]
        if self.comment is None and line == len(self.lines):
            return self.partial
        if self.comment is None or line - len(self.lines) > MAX_OPEN_COMMENT:
            return ()
        start = self.comment if line == len(self.lines) else 0
        return (Piece(start, len(text) - start, Ink.COMMENT),)


class GrowingHighlighter:
    """A highlighter for a code block that is still being written. Its colours are provisional."""

    def __init__(self, language: Language) -> None:
        self.colors = GrowingColors([])
        self._language = language
        self._stack = language.first_state  # the lexer's state at _end
        self._end = 0  # number of lexed characters; only whole lines are lexed

    def update(self, code: str) -> None:
        """Lex the new text. `code` is the code of the last call with text appended to it."""
        colors = self.colors
        complete = code.rfind("\n") + 1
        if complete > self._end:
            colors.partial = ()
        if self._is_full or _has_long_line(code[self._end :]):
            return
        while self._end < complete and not self._is_full:
            lexed = self._lex_unit(code, complete)
            if lexed is None:
                return
            colors.comment = None
            colors.lines += lexed.lines
            self._stack, self._end = lexed.stack, lexed.end
        if not self._is_full and len(code) - self._end <= MAX_PARTIAL:
            colors.partial = self._lex(code, len(code)).rest

    @property
    def _is_full(self) -> bool:
        return len(self.colors.lines) >= MAX_LINES or self._end >= MAX_CODE

    def _lex_unit(self, code: str, complete: int) -> _Lexed | None:
        """Lex the next line. If a comment begins there, lex all lines up to the end of the comment.

        Return None if the text has no end of the comment yet. After MAX_OPEN_COMMENT lines without
        an end, lex only the first line, as if the comment ended there.
        """
        end = code.index("\n", self._end) + 1
        while True:
            lexed = self._lex(code, end)
            if lexed.comment is None:
                return lexed
            close = code.find("*/", lexed.comment + 2, complete)
            if close < 0:
                waiting = code.count("\n", lexed.comment, complete)
                self.colors.comment = lexed.comment - self._end
                return None if waiting <= MAX_OPEN_COMMENT else lexed
            if close < end:
                # The lexer found no comment in these lines. So /* does not begin a comment in this
                # language.
                return lexed
            end = code.index("\n", close) + 1

    def _lex(self, code: str, end: int) -> _Lexed:
        stack = list(self._stack)
        lines: list[LinePieces] = []
        splitter = _LineSplitter()
        comment = None
        for start, kind, text in self._tokens(code[:end], stack):
            if comment is None and self._language.needs_comment_end:
                comment = _open_comment(code, start, kind, text)
            lines += splitter.add(kind, text)
        return _Lexed(lines, splitter.rest, tuple(stack), end, comment)

    def _tokens(self, code: str, stack: list[str]) -> Iterator[LexedPiece]:
        if self._language.tables is not None:
            return _run_tables(self._language, code, self._end, stack)
        return iter(self._language.lexer.get_tokens_unprocessed(code[self._end :]))


@dataclass(frozen=True, slots=True)
class _Lexed:
    """The result of lexing some lines."""

    lines: list[LinePieces]  # pieces of the complete lines
    rest: LinePieces  # pieces of an incomplete last line
    stack: tuple[str, ...]  # the lexer's state after the lexed lines
    end: int  # offset in the code at which the lexed lines end
    comment: int | None  # offset of an unclosed comment, None if there is none


class _LineSplitter:
    """A converter from lexer tokens, which can span lines, to the pieces of each line."""

    def __init__(self) -> None:
        self._pieces: list[Piece] = []
        self._column = 0

    @property
    def rest(self) -> LinePieces:
        return tuple(self._pieces)

    def add(self, kind: TokenType, text: str) -> Iterator[LinePieces]:
        """Add the next token. Yield the pieces of each line that ends in this token."""
        ink = ink_of(kind)
        for number, part in enumerate(text.split("\n")):
            if number:
                yield tuple(self._pieces)
                self._pieces, self._column = [], 0
            if ink is not None and part:
                self._add(ink, len(part))
            self._column += len(part)

    def _add(self, ink: Ink, length: int) -> None:
        start = self._column
        if self._pieces:
            last = self._pieces[-1]
            if last.ink is ink and last.start + last.length == start:
                start, length = last.start, last.length + length
                self._pieces.pop()
        if len(self._pieces) < MAX_PIECES:
            self._pieces.append(Piece(start, length, ink))


def _open_comment(code: str, start: int, kind: TokenType, text: str) -> int | None:
    """Return the offset of an unclosed /* comment in a token, or None."""
    if kind in String:
        return None
    if kind in Comment:
        return start if text.startswith("/*") and not text.endswith("*/") else None
    at = code.find("/*", start, start + len(text) + 1)
    return at if at >= 0 else None


def _run_tables(
    language: Language, code: str, start: int, stack: list[str]
) -> Iterator[LexedPiece]:
    """Lex code from the offset `start` with the rule tables of a Pygments lexer.

    `stack` has the lexer's states and is changed in place. Pygments' own loop does not expose its
    stack, so it cannot resume in the middle of a text.
    """
    assert language.tables is not None
    while start < len(code):
        for rule in language.tables[stack[-1]]:
            match = rule[0](code, start)
            if match is not None:
                yield from _act(language, rule[1], match)
                start = match.end()
                _enter(rule[2], stack)
                break
        else:
            if code[start] == "\n":
                stack[:] = language.first_state
            yield start, Error, code[start]
            start += 1


def _act(language: Language, action: Action, match: Match[str]) -> Iterator[LexedPiece]:
    if isinstance(action, TokenType):
        yield match.start(), action, match.group()
    elif action is not None:
        yield from action(language.lexer, match)


def _enter(new_state: NewState, stack: list[str]) -> None:
    """Apply a Pygments state transition to `stack`.

    A transition is a state name, "#pop", "#push", a tuple of these, or -n for n pops.
    """
    match new_state:
        case None:
            return
        case int():
            steps: tuple[str, ...] = ("#pop",) * -new_state
        case str():
            steps = (new_state,)
        case _:
            steps = new_state
    for step in steps:
        if step == "#pop":
            del stack[max(1, len(stack) - 1) :]
        else:
            stack.append(stack[-1] if step == "#push" else step)


def packed_lines(lines: Iterable[LinePieces]) -> list[list[int]]:
    """Convert each line to a flat list of numbers: start, length and ink of every piece."""
    return [
        [number for piece in pieces for number in (piece.start, piece.length, piece.ink.value)]
        for pieces in lines
    ]


def unpacked_lines(lines: Iterable[Sequence[int]]) -> list[LinePieces]:
    """Convert the lists of numbers from packed_lines() back to lines of pieces."""
    return [
        tuple(Piece(line[at], line[at + 1], Ink(line[at + 2])) for at in range(0, len(line), 3))
        for line in lines
    ]


def _has_long_line(code: str) -> bool:
    return any(len(line) > MAX_LINE_LEN for line in code.split("\n"))
