"""Contract: code decides by the kind of a problem, not by its words, which can be translated."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.contracts.sources import ROOT

WORDS = ("title", "cause", "advice")


def is_of_a_problem(node: ast.expr) -> bool:
    """Return True if an expression is a text of an error class or of a problem."""
    match node:
        case ast.Attribute(value=ast.Name(id=name), attr=attr):
            return attr in WORDS and (name == "problem" or name.endswith("Error"))
        case ast.Attribute(value=ast.Attribute(attr="problem"), attr=attr):
            return attr in WORDS
        case _:
            return False


def compared_words(source: str) -> Iterator[int]:
    """Yield the lines in which the words of an error class or of a problem are compared."""
    if not any(f".{word}" in source for word in WORDS):
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare) and any(
            is_of_a_problem(one) for one in (node.left, *node.comparators)
        ):
            yield node.lineno


def test_no_code_compares_the_words_of_a_problem() -> None:
    found = [
        f"{file.relative_to(ROOT)}:{line}"
        for package in ("app", "engine")
        for file in sorted((ROOT / package).rglob("*.py"))
        for line in compared_words(file.read_text(encoding="utf-8"))
    ]
    assert found == [], "Compare Problem.kind. Its words are for people."


@pytest.mark.parametrize(
    "source", ["problem.title == DiskError.title", "status.problem.cause != ''"]
)
def test_contract_finds_compared_words(source: str) -> None:
    assert list(compared_words(source)) == [1]
