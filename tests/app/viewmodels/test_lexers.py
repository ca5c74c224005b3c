from __future__ import annotations

from collections.abc import Iterator

import pytest

from app.viewmodels import lexers
from app.viewmodels.lexers import Absent, Language, LexerShelf, load_language


@pytest.fixture
def shelf() -> Iterator[LexerShelf]:
    shelf = LexerShelf()
    yield shelf
    shelf.close()


def test_language_is_available_after_loading(shelf: LexerShelf) -> None:
    shelf.language("Python")
    shelf.wait_loaded()
    assert isinstance(shelf.language("python"), Language)


def test_unknown_language_name_returns_unknown(shelf: LexerShelf) -> None:
    shelf.language("no such language")
    shelf.wait_loaded()
    assert shelf.language("no such language") is Absent.UNKNOWN
    assert shelf.language("text") is Absent.UNKNOWN
    assert shelf.language("") is Absent.UNKNOWN


@pytest.mark.parametrize(
    ("name", "needs"), [("go", True), ("c", True), ("rust", False), ("bash", False)]
)
def test_needs_comment_end_is_true_if_a_comment_is_one_token(name: str, needs: bool) -> None:
    language = load_language(name)
    assert language is not None
    assert language.needs_comment_end is needs


@pytest.mark.parametrize("name", ["cs", "c#", "nemerle", "inform7"])
def test_lexers_with_variants_have_state_tables(name: str) -> None:
    language = load_language(name)
    assert language is not None
    assert language.tables


def test_lexer_that_raises_returns_unknown_and_logs_once(
    shelf: LexerShelf, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_name: str) -> None:
        raise KeyError("_tokens")

    monkeypatch.setattr(lexers, "load_language", broken)
    while (found := shelf.language("python")) is Absent.LOADING:
        pass
    assert found is shelf.language("python") is Absent.UNKNOWN
    assert caplog.text.count("no colours for python") == 1
