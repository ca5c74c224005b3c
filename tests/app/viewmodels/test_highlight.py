from __future__ import annotations

from functools import lru_cache

import pytest

from app.viewmodels.highlight import (
    MAX_LINE_LEN,
    MAX_LINES,
    GrowingHighlighter,
    Ink,
    LinePieces,
    exact_pieces,
)
from app.viewmodels.lexers import Language, load_language

SAMPLES = {
    "python": '"""Doc\nstring"""\n@cached\ndef f(x: int) -> str:\n    return f"{x}" + \'a\'  # end\n',
    "javascript": "/** doc\n * it's open\n */\nconst a = `x\n${b}`; // c\nreturn 1 / 2 /* d */;\n",
    "c": "#include <stdio.h>\n/* a\n   b */\nint main(void) { return 0; } // x\n",
    "rust": '/* a\n b */ fn main() { let x = "y"; }\n',
    "go": "package main\n/* x\n*/ func main() {}\n",
    "css": "a { color: red; /* x\n y */ margin: 0; }\n",
    "sql": "select a from t where x = 'y' -- c\n",
    "json": '{\n "a": [1, true]\n}\n',
    "csharp": '/* a\n b */ var x = $"{y}"; // c\nreturn 1;\n',
    "php": "$x = 1;\nfunction f($a) { return $a; }\n",
    "bash": 'for f in /tmp/*; do\n echo "$f" # hi\ndone\n',
}


@lru_cache
def language(name: str) -> Language:
    loaded = load_language(name)
    assert loaded is not None
    return loaded


def shown(highlighter: GrowingHighlighter, code: str) -> list[LinePieces]:
    return [highlighter.colors.pieces(number, line) for number, line in enumerate(code.split("\n"))]


def inks(pieces: LinePieces, line: str) -> dict[str, Ink]:
    return {line[piece.start : piece.start + piece.length]: piece.ink for piece in pieces}


@pytest.mark.parametrize("name", SAMPLES)
def test_growing_code_ends_with_the_exact_pieces(name: str) -> None:
    code = SAMPLES[name]
    highlighter = GrowingHighlighter(language(name))
    for end in range(0, len(code), 3):
        highlighter.update(code[:end])
    highlighter.update(code)
    lines = shown(highlighter, code)
    assert lines[:-1] == list(exact_pieces(language(name), code.removesuffix("\n")))
    assert lines[-1] == ()
    assert any(lines)


def test_exact_pieces_of_python_have_the_expected_inks() -> None:
    (line,) = exact_pieces(language("python"), "def f(): return 'a' + 1  # b")
    assert inks(line, "def f(): return 'a' + 1  # b") == {
        "def": Ink.KEYWORD,
        "f": Ink.FUNCTION,
        "return": Ink.KEYWORD,
        "'a'": Ink.STRING,
        "1": Ink.NUMBER,
        "# b": Ink.COMMENT,
    }


def test_unfinished_last_line_is_coloured() -> None:
    highlighter = GrowingHighlighter(language("python"))
    highlighter.update("x = 1\nreturn")
    assert inks(highlighter.colors.pieces(1, "return"), "return") == {"return": Ink.KEYWORD}


def test_lines_after_an_open_comment_have_the_comment_ink() -> None:
    highlighter = GrowingHighlighter(language("go"))
    highlighter.update("x /* a\nfor it's\nb")
    assert inks(highlighter.colors.pieces(0, "x /* a"), "x /* a") == {"/* a": Ink.COMMENT}
    assert inks(highlighter.colors.pieces(1, "for it's"), "for it's") == {"for it's": Ink.COMMENT}
    assert inks(highlighter.colors.pieces(2, "b"), "b") == {"b": Ink.COMMENT}


def test_comment_start_inside_a_string_does_not_delay_lexing() -> None:
    highlighter = GrowingHighlighter(language("go"))
    highlighter.update('a := "/*"\nreturn 1\n')
    assert inks(highlighter.colors.pieces(1, "return 1"), "return 1")["return"] is Ink.KEYWORD


class CountingLexer:
    """A lexer that counts the characters passed to it."""

    def __init__(self, inner: Language) -> None:
        self.num_characters = 0
        self._inner = inner.lexer

    def get_tokens_unprocessed(self, text: str) -> object:
        self.num_characters += len(text)
        return self._inner.get_tokens_unprocessed(text)


def test_growing_code_is_lexed_once_per_line() -> None:
    inner = language("json")
    counter = CountingLexer(inner)
    highlighter = GrowingHighlighter(
        Language(counter, None, ("root",), needs_comment_end=False)  # pyright: ignore[reportArgumentType] - a stand-in
    )
    code = ' "key": 1,\n' * 300
    for end in range(0, len(code) + 1, 11):
        highlighter.update(code[:end])
    assert counter.num_characters < 3 * len(code)


def test_code_after_max_lines_is_not_coloured() -> None:
    code = "x = 1\n" * (MAX_LINES + 50)
    assert len(list(exact_pieces(language("python"), code))) == MAX_LINES
    highlighter = GrowingHighlighter(language("python"))
    highlighter.update(code)
    assert highlighter.colors.pieces(MAX_LINES - 1, "x = 1")
    assert not highlighter.colors.pieces(MAX_LINES + 1, "x = 1")


def test_code_with_an_overlong_line_is_not_coloured() -> None:
    code = "x = " + "1" * MAX_LINE_LEN
    assert list(exact_pieces(language("python"), code)) == []


def test_exact_pieces_lexes_lazily() -> None:
    lines = exact_pieces(language("python"), "x = 1\n" * 1000)
    assert [len(next(lines)) for _ in range(3)] == [1, 1, 1]


def test_diff_lines_added_and_removed_have_different_inks() -> None:
    (old,), (new,) = exact_pieces(language("diff"), "-old\n+new")

    assert (old.ink, new.ink) == (Ink.TYPE, Ink.STRING)
