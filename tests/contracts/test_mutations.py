"""Tests that each mutation of tests.mutation still finds its expression and its tests.

These tests only apply the mutations. To run the tests with each mutation takes too long.
"""

from __future__ import annotations

import ast

import pytest

from tests.mutation.__main__ import MUTATIONS, ROOT
from tests.mutation.places import Mutation


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_mutation_changes_the_source(mutation: Mutation) -> None:
    source = (ROOT / mutation.path).read_text(encoding="utf-8")
    mutated = mutation.apply(source)
    assert ast.dump(ast.parse(mutated)) != ast.dump(ast.parse(source))


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_mutation_of_reformatted_source_is_the_same(mutation: Mutation) -> None:
    source = (ROOT / mutation.path).read_text(encoding="utf-8")
    mutated = ast.unparse(ast.parse(mutation.apply(source)))
    assert ast.unparse(ast.parse(mutation.apply(ast.unparse(ast.parse(source))))) == mutated


def test_mutations_have_names_of_their_own_and_tests_that_exist() -> None:
    assert len({mutation.name for mutation in MUTATIONS}) == len(MUTATIONS)
    tests = {test for mutation in MUTATIONS for test in mutation.tests}
    assert [test for test in sorted(tests) if not (ROOT / test).exists()] == []
