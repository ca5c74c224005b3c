"""Every mutation of tests.mutation finds its place: it takes too long to run with the others."""

from __future__ import annotations

import ast

import pytest

from tests.mutation import MUTATIONS, ROOT, Mutation


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_mutation_of_the_sources_changes_one_place_of_the_program(mutation: Mutation) -> None:
    source = (ROOT / mutation.path).read_text(encoding="utf-8")
    mutated = mutation.apply(source)
    assert ast.dump(ast.parse(mutated)) != ast.dump(ast.parse(source))


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_mutation_of_reformatted_sources_is_the_same(mutation: Mutation) -> None:
    source = (ROOT / mutation.path).read_text(encoding="utf-8")
    mutated = ast.unparse(ast.parse(mutation.apply(source)))
    assert ast.unparse(ast.parse(mutation.apply(ast.unparse(ast.parse(source))))) == mutated
