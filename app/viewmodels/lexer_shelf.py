"""Colours of code by language name, from the helper process. No Qt.

Only the main thread uses a LexerShelf. Its worker thread waits for the helper process. If the
process must be ended, because a lexer does not end, the code of this language stays plain.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from itertools import count
from typing import TypeVar, cast

from app.viewmodels.helper import Helper, HelperEndedError, HelperError
from app.viewmodels.highlight import GrowingColors, LinePieces, unpacked_lines

log = logging.getLogger(__name__)
T = TypeVar("T")

# Language names of fenced blocks with plain text. They get no colours.
_UNCOLORED = frozenset({"", "text", "txt", "plain", "plaintext", "output", "none"})
# Seconds for which the window waits for the colours of new text, so that text and colours appear in
# the same frame. Lexing a line takes about one millisecond.
_WAIT_S = 0.004
_LOADING_S = 5.0  # seconds of CPU time that loading a language may take


@dataclass(frozen=True, slots=True)
class LoadedLanguage:
    """A language that the helper process has loaded."""

    name: str  # display name
    suffix: str  # file name suffix, such as ".py"; empty if unknown


class Absent(Enum):
    """The reasons why a language is not available."""

    LOADING = auto()  # the lexer is being loaded; the caller can try again later
    UNKNOWN = auto()  # there is no lexer, or the lexer did not end


class LexerShelf:
    """The languages that were requested so far, and the queue of calls of the helper process."""

    def __init__(self) -> None:
        self._helper = Helper()
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="lexers")
        self._languages: dict[str, Future[LoadedLanguage | None]] = {}
        self._endless: set[str] = set()  # languages whose lexer did not end
        self._numbers = count()

    def language(self, name: str) -> LoadedLanguage | Absent:
        """Return a language, or the reason why it is not available.

        The first call for a language starts to load its lexer.
        """
        name = name.lower()
        if name in _UNCOLORED or name in self._endless:
            return Absent.UNKNOWN
        if name not in self._languages:
            load = partial(self._call, name, _language, "load", name, limit_s=_LOADING_S)
            self._languages[name] = self._worker.submit(load)
        future = self._languages[name]
        if not future.done():
            return Absent.LOADING
        return future.result() or Absent.UNKNOWN

    def exact(self, name: str, code: str) -> Future[list[LinePieces] | None]:
        """Start to lex a complete block. The result is None if the lexer fails or does not end."""
        call = partial(self._call, name.lower(), _lines, "exact", name.lower(), code)
        return self._worker.submit(call)

    def growing(self, name: str) -> GrowingLexer:
        """Return a lexer of a block that is still being written, in a language that is loaded."""
        return GrowingLexer(partial(self._grow, name.lower(), next(self._numbers)))

    def wait_done(self) -> None:
        """Block until all calls so far are done."""
        self._worker.submit(int).result()

    def close(self) -> None:
        """End the helper process and the worker thread."""
        self._helper.close()
        self._worker.shutdown(wait=True, cancel_futures=True)

    def _grow(
        self, name: str, block: int, start: int, text: str
    ) -> Future[Mapping[str, object] | None]:
        call = partial(self._call, name, _mapping, "grow", name, block, start, text)
        return self._worker.submit(call)

    def _call(
        self, language: str, read: Callable[[object], T], *args: str | int, **limits: float
    ) -> T | None:
        """Call the helper process on the worker thread. Return None if the call fails."""
        if language in self._endless:
            return None
        try:
            return read(self._helper.call(str(args[0]), *args[1:], **limits))
        except HelperEndedError:
            self._endless.add(language)
            log.info("the lexer of %s did not end", language)
        except HelperError as error:
            log.warning("no colours for %s: %s", language, error)
        return None


class GrowingLexer:
    """The colours of a code block that is still being written.

    Args:
        grow: starts to lex text, from the length of the code before it and the text.
    """

    def __init__(self, grow: Callable[[int, str], Future[Mapping[str, object] | None]]) -> None:
        self.colors = GrowingColors([])
        self._grow = grow
        self._code = ""
        self._start = 0  # offset of the text that was sent last
        self._num_sent = 0  # number of characters that were sent to the helper process
        self._failed = False  # True if the language has no lexer any more
        self._call: Future[Mapping[str, object] | None] | None = None

    @property
    def is_waiting(self) -> bool:
        """True if some text is not lexed yet."""
        return self._call is not None

    def update(self, code: str) -> None:
        """Lex new text. `code` is the code of the last call with text appended to it.

        Wait for the colours for a few milliseconds, unless those of earlier text are still missing.
        """
        self._code = code
        if self._call is None and not self._failed:
            try:
                self._send().result(_WAIT_S)
            except TimeoutError:
                return
        self.poll()

    def poll(self) -> bool:
        """Take the colours that have arrived. Return True if there are any."""
        if self._call is None or not self._call.done():
            return False
        grown, self._call = self._call.result(), None
        if grown is None:
            # The process was ended and has lost the code, or the lexer failed.
            self._failed = self._start == 0
            self._num_sent = 0
            if not self._failed:
                self._send()
            return False
        colors = self.colors
        lines = unpacked_lines(cast("Sequence[Sequence[int]]", grown["lines"]))
        colors.lines[cast("int", grown["first"]) :] = lines
        colors.partial = unpacked_lines([cast("Sequence[int]", grown["partial"])])[0]
        colors.comment = cast("int | None", grown["comment"])
        if self._num_sent < len(self._code):
            self._send()
        return True

    def _send(self) -> Future[Mapping[str, object] | None]:
        self._start, self._num_sent = self._num_sent, len(self._code)
        self._call = self._grow(self._start, self._code[self._start :])
        return self._call


def _language(value: object) -> LoadedLanguage | None:
    return None if value is None else LoadedLanguage(*cast("tuple[str, str]", value))


def _lines(value: object) -> list[LinePieces]:
    return unpacked_lines(cast("Sequence[Sequence[int]]", value))


def _mapping(value: object) -> Mapping[str, object] | None:
    return cast("Mapping[str, object] | None", value)
