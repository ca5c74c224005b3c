"""The lines that tests.mutation breaks are still there: it takes too long to run with the others."""

from __future__ import annotations

import pytest

from tests.mutation import MUTATIONS, ROOT, Mutation


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_the_line_is_there_once(mutation: Mutation) -> None:
    assert (ROOT / mutation.path).read_text(encoding="utf-8").count(mutation.line) == 1
    assert mutation.line != mutation.broken
