from __future__ import annotations

from collections.abc import Iterator
from threading import Event

import pytest

from app.viewmodels import helper
from app.viewmodels.highlight import exact_pieces
from app.viewmodels.lexer_shelf import Absent, GrowingLexer, LexerShelf, LoadedLanguage
from app.viewmodels.lexers import load_language
from tests.hostile.contents import ENDLESS_CODE

CODE = "def f():\n    return 'a'  # b\n"
ENDLESS = "autohotkey", ENDLESS_CODE


@pytest.fixture
def shelf() -> Iterator[LexerShelf]:
    shelf = LexerShelf()
    yield shelf
    shelf.close()


@pytest.fixture
def started_shelf(shelf: LexerShelf, monkeypatch: pytest.MonkeyPatch) -> LexerShelf:
    """Return a shelf with two loaded languages. Calls now end at a lower limit of CPU time."""
    for name in ("python", ENDLESS[0]):
        shelf.language(name)
    shelf.wait_done()
    monkeypatch.setattr(helper, "LIMIT_S", 0.2)
    return shelf


def poll(shelf: LexerShelf, growing: GrowingLexer) -> None:
    """Wait until the code is lexed, and take the results."""
    while growing.is_waiting:
        shelf.wait_done()
        growing.poll()


def test_language_is_available_after_loading(shelf: LexerShelf) -> None:
    may_load = Event()
    shelf._worker.submit(may_load.wait)  # pyright: ignore[reportPrivateUsage]
    assert shelf.language("Python") is Absent.LOADING
    may_load.set()
    shelf.wait_done()
    assert shelf.language("python") == LoadedLanguage("Python", ".py")


def test_unknown_language_name_returns_unknown(shelf: LexerShelf) -> None:
    shelf.language("no such language")
    shelf.wait_done()
    assert shelf.language("no such language") is Absent.UNKNOWN
    assert shelf.language("text") is Absent.UNKNOWN
    assert shelf.language("") is Absent.UNKNOWN


def test_complete_code_has_the_pieces_of_its_lexer(shelf: LexerShelf) -> None:
    language = load_language("python")
    assert language is not None
    assert shelf.exact("Python", CODE).result() == list(exact_pieces(language, CODE))


def test_growing_code_ends_with_the_exact_pieces(shelf: LexerShelf) -> None:
    growing = shelf.growing("python")
    for end in range(1, len(CODE) + 1):
        growing.update(CODE[:end])
    poll(shelf, growing)
    shown = [growing.colors.pieces(at, line) for at, line in enumerate(CODE.split("\n"))]
    exact = shelf.exact("python", CODE).result()
    assert exact is not None
    assert shown[:2] == exact[:2]
    assert any(shown)


def test_growing_code_is_lexed_again_after_the_process_has_ended(
    started_shelf: LexerShelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    growing = started_shelf.growing("python")
    growing.update("return 1\n")
    poll(started_shelf, growing)
    started_shelf.exact(*ENDLESS).result()
    monkeypatch.undo()  # the first call of a new process includes its imports
    growing.update("return 1\nreturn 2\n")
    poll(started_shelf, growing)
    assert growing.colors.pieces(0, "return 1") == growing.colors.pieces(1, "return 2") != ()


def test_lexer_without_end_is_ended_and_its_language_stays_plain(
    started_shelf: LexerShelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, code = ENDLESS
    assert started_shelf.exact(name, code).result() is None
    assert started_shelf.language(name) is Absent.UNKNOWN
    monkeypatch.undo()
    assert started_shelf.exact("python", CODE).result()


def test_growing_code_of_a_lexer_without_end_stays_plain(started_shelf: LexerShelf) -> None:
    name, code = ENDLESS
    growing = started_shelf.growing(name)
    growing.update(f"{code}\n")
    poll(started_shelf, growing)
    growing.update(f"{code}\na := 1\n")
    assert not growing.is_waiting
    assert growing.colors.pieces(1, "a := 1") == ()


def test_close_ends_a_lexer_without_end(started_shelf: LexerShelf) -> None:
    lexing = started_shelf.exact(*ENDLESS)
    started_shelf.close()
    assert lexing.cancelled() or lexing.result() is None
