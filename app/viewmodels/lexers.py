"""Pygments lexers by language name, imported on a worker: the first one takes 0.1 s.

A shelf belongs to the main thread; close() ends its worker.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum, auto
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

log = logging.getLogger(__name__)

_OTHER_NAMES = {"jsx": "javascript", "vue": "html", "svelte": "html", "sh-session": "console"}
_UNCOLORED = frozenset({"", "text", "txt", "plain", "plaintext", "output", "none"})

_LEXER_OPTIONS = {"stripnl": False, "startinline": True}  # PHP snippets often lack <?php
_FIRST_STATES = {"php": ("root", "php")}
_COMMENT = "/* a\n b */ c\n"

LexedPiece = tuple[int, TokenType, str]
Action = TokenType | Callable[[Lexer, Match[str]], Iterator[LexedPiece]] | None
NewState = str | int | tuple[str, ...] | None
Rule = tuple[Callable[[str, int], "Match[str] | None"], Action, NewState]
Tables = Mapping[str, Sequence[Rule]]


@dataclass(frozen=True, slots=True)
class Language:
    """A lexer, and what colouring growing code needs to know of it.

    tables are its state machine, None where it is none. needs_comment_end: a comment is one token,
    so an open /* cannot be resumed at the next line.
    """

    lexer: Lexer
    tables: Tables | None
    first_state: tuple[str, ...]
    needs_comment_end: bool

    @property
    def name(self) -> str:
        """What people call it."""
        return self.lexer.name

    @property
    def suffix(self) -> str:
        """How its files' names end, with the dot; empty if that is not known."""
        patterns: list[str] = [pattern for pattern in self.lexer.filenames if pattern[:2] == "*."]
        return patterns[0][1:] if patterns else ""


class Absent(Enum):
    """Why there is no language."""

    LOADING = auto()
    UNKNOWN = auto()


class LexerShelf:
    """Gives out languages; what is not there yet is loaded and can be asked for again."""

    def __init__(self) -> None:
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="lexers")
        self._languages: dict[str, Future[Language | None]] = {}

    def language(self, name: str) -> Language | Absent:
        """Return a language, or why it is not there."""
        name = name.lower()
        if name in _UNCOLORED:
            return Absent.UNKNOWN
        if name not in self._languages:
            self._languages[name] = self._worker.submit(_load_safely, name)
        future = self._languages[name]
        if not future.done():
            return Absent.LOADING
        return future.result() or Absent.UNKNOWN

    def wait_loaded(self) -> None:
        """Wait until everything that was asked for is there."""
        for future in self._languages.values():
            future.result()

    def close(self) -> None:
        self._worker.shutdown(wait=True, cancel_futures=True)


def _load_safely(name: str) -> Language | None:
    """A lexer of Pygments that breaks leaves its code uncoloured: it is asked for while painting."""
    try:
        return load_language(name)
    except Exception:
        log.exception("no colours for %s", name)
        return None


def load_language(name: str) -> Language | None:
    """Import and build a lexer; None if nobody knows the name."""
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
    # Pygments keeps its state to itself; resuming at a line needs the compiled tables. They are the class's,
    # or where a lexer has variants (C#), its own.
    own = {**vars(type(lexer)), **vars(lexer)}
    return cast("Tables | None", own.get("_tokens"))
