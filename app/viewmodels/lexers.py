"""Pygments lexers by language name. Only the helper process uses them (helper_program.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from re import Match
from typing import cast

from pygments.lexer import ExtendedRegexLexer, Lexer, RegexLexer
from pygments.lexers import (
    get_lexer_by_name,  # pyright: ignore[reportUnknownVariableType] - its options are untyped
)
from pygments.token import (
    Comment,
    _TokenType as TokenType,  # pyright: ignore[reportPrivateUsage] - the only name of this type
)
from pygments.util import ClassNotFound

_OTHER_NAMES = {"jsx": "javascript", "vue": "html", "svelte": "html", "sh-session": "console"}

# startinline: lex PHP without an opening <?php tag, because snippets often lack it.
_LEXER_OPTIONS = {"stripnl": False, "startinline": True}
_FIRST_STATES = {"php": ("root", "php")}
# Test input: shows if a lexer returns a comment of two lines as one token.
_COMMENT = "/* a\n b */ c\n"

LexedPiece = tuple[int, TokenType, str]
Action = TokenType | Callable[[Lexer, Match[str]], Iterator[LexedPiece]] | None
NewState = str | int | tuple[str, ...] | None
Rule = tuple[Callable[[str, int], "Match[str] | None"], Action, NewState]
Tables = Mapping[str, Sequence[Rule]]


@dataclass(frozen=True, slots=True)
class Language:
    """A Pygments lexer, with the properties needed to resume lexing in the middle of a text."""

    lexer: Lexer
    # Key: state. Value: the lexer's rules in this state. None if the lexer is not a plain
    # RegexLexer.
    tables: Tables | None
    first_state: tuple[str, ...]  # the stack of states at the start of a block
    # True if the lexer returns a comment as one token. Lexing then cannot resume inside a comment.
    needs_comment_end: bool

    @property
    def name(self) -> str:
        """Display name of the language."""
        return self.lexer.name

    @property
    def suffix(self) -> str:
        """File name suffix of the language, such as ".py"; empty if unknown."""
        patterns: list[str] = [pattern for pattern in self.lexer.filenames if pattern[:2] == "*."]
        return patterns[0][1:] if patterns else ""


def load_language(name: str) -> Language | None:
    """Import and create the lexer of a language. Return None if the name is unknown."""
    try:
        lexer = get_lexer_by_name(_OTHER_NAMES.get(name, name), **_LEXER_OPTIONS)
    except ClassNotFound:
        return None
    first_state = _FIRST_STATES.get(name, ("root",))
    return Language(lexer, _tables(lexer), first_state, _needs_comment_end(lexer))


def _needs_comment_end(lexer: Lexer) -> bool:
    comments = [
        piece for _, kind, piece in lexer.get_tokens_unprocessed(_COMMENT) if kind in Comment
    ]
    return any("a" in piece for piece in comments) and "/*" not in comments


def _tables(lexer: Lexer) -> Tables | None:
    if isinstance(lexer, ExtendedRegexLexer) or not isinstance(lexer, RegexLexer):
        return None
    # highlight.py runs the compiled rule tables itself, because Pygments cannot resume at a line.
    # The tables are a class attribute, or an instance attribute if the lexer has variants (C#).
    own = {**vars(type(lexer)), **vars(lexer)}
    return cast("Tables | None", own.get("_tokens"))
