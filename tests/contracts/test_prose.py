"""Docstrings and comments open with a verb or a noun, and do not speak of code as of people.

A docstring that opens with a question word is a clause that needs its signature to make sense: "What is
held", "Whether it fits". ruff's D401 checks that functions open with an imperative verb.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contracts.sources import ROOT, statements

PACKAGES = ["app", "engine", "packaging", "tests"]
OPENING = re.compile(
    r"(What|Who|Whose|Whom|Whoever|Whatever|Where|How|Whether|Of|All (?:that|there)|Not|None of"
    r"|Nobody|Somebody|Anybody)\b"
)
PERSONIFIED = re.compile(
    r"\b(somebody|nobody|anybody|whoever|anew|go(?:es|ing|ne)? on)\b", re.IGNORECASE
)
COMMENT_OPENING = re.compile(rf"#[# ]*{OPENING.pattern}")
MACHINE = re.compile(r"#\s*(type:|noqa|pyright|!)")  # comments for tools
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def docstrings(source: str) -> Iterator[str]:
    for node in statements(ast.parse(source)):
        if isinstance(node, DOCUMENTED) and (text := ast.get_docstring(node)):
            yield text


def comments(source: str) -> Iterator[str]:
    """Yield each comment. Adjacent comment lines without code beside them are one comment."""
    lines: list[str] = []
    last = -1  # line of the last comment without code beside it
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT or MACHINE.match(token.string):
            continue
        is_alone = token.line.lstrip().startswith("#")
        if lines and not (is_alone and token.start[0] == last + 1):
            yield " ".join(lines)
            lines = []
        lines.append(token.string.lstrip("# "))
        last = token.start[0] if is_alone else -1
    if lines:
        yield " ".join(lines)


def may_have_faults(source: str) -> bool:
    """Return False if no comment of the source can have a fault. Tokens take most of the time."""
    joined = re.sub(r"\n\s*#[# ]*", " ", source)
    return bool(COMMENT_OPENING.search(source) or PERSONIFIED.search(joined))


def faults(source: str) -> list[str]:
    texts = [*docstrings(source), *(comments(source) if may_have_faults(source) else ())]
    return [text[:80] for text in texts if OPENING.match(text) or PERSONIFIED.search(text)]


@pytest.mark.slow
@pytest.mark.parametrize("package", PACKAGES)
def test_docstrings_and_comments_open_with_a_verb_or_noun(package: str) -> None:
    files = [file for file in sorted((ROOT / package).rglob("*.py")) if file != Path(__file__)]
    found = {str(file.relative_to(ROOT)): faults(file.read_text("utf-8")) for file in files}

    assert len(files) > 20
    wrong = {name: texts for name, texts in found.items() if texts}
    assert not wrong, f"open these docstrings and comments with a verb or a noun: {wrong}"


def test_faults_of_each_kind_are_found() -> None:
    source = '''
"""What is held."""
size = 1  # of all that somebody keeps
# A comment that is fine,
# where this line continues it.
def fits():
    """Whether it fits."""
    # It goes on until the end.
'''
    assert faults(source) == [
        "What is held.",
        "Whether it fits.",
        "of all that somebody keeps",
        "It goes on until the end.",
    ]
